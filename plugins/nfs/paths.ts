import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Everything that the private server owns. */
export interface Place {
  readonly root: string;
  readonly conf: string;
  readonly pid: string;
  readonly recovery: string;
  readonly credentials: string;
  /** Numbers of exports: outlives every restart. */
  readonly book: string;
}

export function placeIn(stateDir: string): Place {
  const root = join(stateDir, 'nfs');
  return {
    root,
    conf: join(root, 'ganesha.conf'),
    pid: join(root, 'pid'),
    recovery: join(root, 'recovery'),
    credentials: join(root, 'credentials'),
    book: join(root, 'exports.json'),
  };
}

/** Why no server can live there; undefined when one can. */
export function placeProblem({ root }: Place): string | undefined {
  return /["\\\x00-\x1f\x7f]/.test(root)
    ? `the path ${root} holds a quotation mark, a backslash or a control character; choose another supervisor.state_dir`
    : undefined;
}

export async function preparePlace(place: Place): Promise<void> {
  for (const folder of [place.root, place.recovery, place.credentials])
    await mkdir(folder, { recursive: true, mode: 0o700 });
}
