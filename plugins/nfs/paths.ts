import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Paths of everything that the private server owns. */
export interface NfsPaths {
  readonly root: string;
  readonly conf: string;
  readonly pid: string;
  readonly recovery: string;
  readonly credentials: string;
  /** Export ids; kept across restarts. */
  readonly book: string;
}

export function nfsPaths(stateDir: string): NfsPaths {
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

/** Why no server can use these paths; undefined when one can. */
export function pathsProblem({ root }: NfsPaths): string | undefined {
  return /["\\\x00-\x1f\x7f]/.test(root)
    ? `the path ${root} holds a quotation mark, a backslash or a control character; choose another supervisor.state_dir`
    : undefined;
}

export async function preparePaths(paths: NfsPaths): Promise<void> {
  for (const folder of [paths.root, paths.recovery, paths.credentials])
    await mkdir(folder, { recursive: true, mode: 0o700 });
}
