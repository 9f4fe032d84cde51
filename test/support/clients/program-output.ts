/**
 * A client program whose output is the file: read as fast as it is wanted, ended when it is wanted no more.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';

/** The standard output of a program. Rejects with its error output when it ends with another code than 0. */
export async function* streamOf(command: string, args: readonly string[]): AsyncGenerator<Buffer> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: '/nonexistent' },
  });
  let complaint = '';
  child.stderr.on('data', (piece: Buffer) => (complaint += piece.toString()));
  const ended = once(child, 'close') as Promise<[number | null]>;
  try {
    for await (const piece of child.stdout) yield piece as Buffer;
    const [code] = await ended;
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${complaint.trim()}`);
  } finally {
    child.kill('SIGKILL');
  }
}

/** SHA-256 of all pieces, in hexadecimal. */
export async function sumOfStream(pieces: AsyncIterable<Buffer>): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}
