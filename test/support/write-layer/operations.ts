/**
 * Operations of users on a folder with two files and two folders, as sequences of all of them: what
 * CrashMonkey's ACE does for file systems. The same code works on a share (in a child) and on a plain folder,
 * which is the model.
 */
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  rmdirSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';

/** What every folder begins with, on the remote. */
export const BEGINNING: Readonly<Record<string, number>> = { a: 150_000, 'f/x': 1_000 };

/** Differs with the place in the sequence, so that a former version is told from a later one. */
function text(seed: number, bytes: number): Buffer {
  return Buffer.from(
    `${seed}:`
      .padEnd(7, '.')
      .repeat(Math.ceil(bytes / 7))
      .slice(0, bytes),
  );
}

function patch(file: string, seed: number): void {
  const fd = openSync(file, 'r+');
  try {
    writeSync(fd, text(seed, 500), 0, 500, 40_000);
  } finally {
    closeSync(fd);
  }
}

type Operation = (at: (name: string) => string, seed: number) => void;

/** Name → what is done in the folder. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'overwrite a': (at, seed) => writeFileSync(at('a'), text(seed, 90_000)),
  'write b': (at, seed) => writeFileSync(at('b'), text(seed, 2_000)),
  'append a': (at, seed) => appendFileSync(at('a'), text(seed, 700)),
  'append b': (at, seed) => appendFileSync(at('b'), text(seed, 700)),
  'patch a': (at, seed) => patch(at('a'), seed),
  'shorten a': (at) => truncateSync(at('a'), 900),
  'lengthen a': (at) => truncateSync(at('a'), 160_000),
  'empty a': (at) => truncateSync(at('a'), 0),
  'rename a b': (at) => renameSync(at('a'), at('b')),
  'rename b a': (at) => renameSync(at('b'), at('a')),
  'rename a f/a': (at) => renameSync(at('a'), at('f/a')),
  'rename f/x a': (at) => renameSync(at('f/x'), at('a')),
  'delete a': (at) => unlinkSync(at('a')),
  'delete b': (at) => unlinkSync(at('b')),
  'make g': (at) => mkdirSync(at('g')),
  'write g/y': (at, seed) => writeFileSync(at('g/y'), text(seed, 300)),
  'append f/x': (at, seed) => appendFileSync(at('f/x'), text(seed, 50)),
  'delete f/x': (at) => unlinkSync(at('f/x')),
  'rename f g': (at) => renameSync(at('f'), at('g')),
  'rename g f': (at) => renameSync(at('g'), at('f')),
  'remove g': (at) => rmdirSync(at('g')),
  'remove f and all': (at) => rmSync(at('f'), { recursive: true }),
};

export interface Step {
  /** Relative to the root. */
  readonly folder: string;
  readonly operation: string;
  readonly seed: number;
}

/** Undefined when it was done, else the error's code: nothing was acknowledged then. */
export function carryOut(root: string, { folder, operation, seed }: Step): string | undefined {
  try {
    OPERATIONS[operation]?.((name) => join(root, folder, name), seed);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
}

/** All sequences of this length. */
export function sequences(length: number): readonly (readonly string[])[] {
  if (length === 0) return [[]];
  return sequences(length - 1).flatMap((head) =>
    Object.keys(OPERATIONS).map((operation) => [...head, operation]),
  );
}
