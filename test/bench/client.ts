/** Clients run as processes of their own, to their end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { within } from '../support/platform/wait.ts';

export interface ClientOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** What it printed. Rejects with the end of that when it failed. */
export async function runClient(
  command: string,
  args: readonly string[],
  { input, env = {}, timeoutMs = 60_000 }: ClientOptions = {},
): Promise<string> {
  const child = spawn(command, args, {
    stdio: 'pipe',
    env: {
      PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
      LANG: 'C.UTF-8',
      HOME: '/nonexistent',
      ...env,
    },
  });
  const pieces: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => void pieces.push(piece));
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  try {
    await within(`${command} has ended`, timeoutMs, once(child, 'close'));
  } finally {
    child.kill('SIGKILL');
  }
  const output = Buffer.concat(pieces).toString();
  if (child.exitCode !== 0)
    throw new Error(`${command} failed with ${child.exitCode}: ${output.slice(-400)}`);
  return output;
}
