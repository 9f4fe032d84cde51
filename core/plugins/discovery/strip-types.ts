/**
 * TypeScript sources of a plugin run without a build: their types are blanked in the copy that is loaded, so
 * lines and columns stay those of the source. As in Node, only syntax that leaves nothing behind is taken: no
 * `enum`, no parameter properties, no `namespace` with values; and a module is imported by the name of its
 * file, `./lamp.ts`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { lessened } from '../../platform/processes/lessened.ts';
import { MayPass } from './may-pass.ts';

const CHILD = fileURLToPath(new URL('./strip-types-child.js', import.meta.url));
const LONGEST_MS = 30_000;

export function isTypeScript(file: string): boolean {
  return /\.m?ts$/.test(file);
}

/**
 * Blanks the types of all sources below the folder but those of its packages. Rejects with a sentence that
 * names file and line of the first that cannot be taken. In a child process: the parser takes some 40 MB.
 */
export async function stripTypes(folder: string): Promise<void> {
  const [command, args] = lessened(process.execPath, [CHILD, folder]);
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {},
    timeout: LONGEST_MS,
    killSignal: 'SIGKILL',
  });
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => (stderr = (stderr + chunk.toString()).slice(-1_000)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return;
  // Ended by its time, or by the machine.
  const Kind = code === null ? MayPass : Error;
  throw new Kind(
    child.killed
      ? `its TypeScript sources took longer than ${LONGEST_MS / 1_000} s to read; build it, and name the .js file`
      : `it cannot be loaded: ${stderr.trim() || 'what reads its TypeScript sources has ended early'}`,
  );
}
