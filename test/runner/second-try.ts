/**
 * A test file that fails is run once more, by itself. The limits of time in the tests are those of the
 * product, on a machine that may be doing anything; a file that fails twice has a reason, and one that fails
 * only in company is named as unsteady. With more than a few of those it is the machine or the program, and
 * nothing is tried again.
 */
import { basename } from 'node:path';
import { unitFilesOf } from './unit-files.ts';

/** With more failed files than this, none is run again. */
export const MOST_UNSTEADY = 6;

export interface Outcome {
  /** Paths of the files in which a test failed. */
  readonly failed: readonly string[];
  /** Ended by a signal: what is missing has not passed. */
  readonly isCutShort: boolean;
}

export interface Tries {
  readonly first: () => Promise<Outcome>;
  /** One after the other, with nothing beside. */
  readonly alone: (files: readonly string[]) => Promise<Outcome>;
  readonly say: (line: string) => void;
}

/**
 * The runner names the file in which a test was declared. Unit tests are declared in many, which a few files
 * bring together, and some of them in the test kit, which any of these may use: run by itself, such a file
 * would have no tests, and pass.
 */
export function filesToRun(declaredIn: string | undefined, files: readonly string[]): readonly string[] {
  if (declaredIn !== undefined && files.includes(declaredIn)) return [declaredIn];
  const units = unitFilesOf(declaredIn ?? '');
  const own = files.filter((file) => units.some((name) => file.endsWith(`/test/${name}.js`)));
  if (own.length === 0)
    throw new Error(`a test failed in ${declaredIn ?? 'no file'}, which is none of those that were run`);
  return own;
}

/** True when each file has passed, at the first or the second try. */
export async function inTwoTries({ first, alone, say }: Tries): Promise<boolean> {
  const { failed, isCutShort } = await first();
  if (isCutShort || failed.length > MOST_UNSTEADY) return false;
  if (failed.length === 0) return true;
  say(
    '# these failed above, which is a defect to look at, and run once more, alone: ' +
      `${failed.map((file) => basename(file)).join(', ')}`,
  );
  const second = await alone(failed);
  return !second.isCutShort && second.failed.length === 0;
}
