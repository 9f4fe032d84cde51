/** Real clients of the servers that show shares: smbclient and libnfs's tools, each with a deadline. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { Daemon, StatusJson } from '../daemon/daemon.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until, within } from '../platform/wait.ts';

export interface ClientResult {
  readonly code: number | null;
  readonly output: string;
}

export interface ExportStatus extends StatusJson {
  readonly smbd_running: boolean;
  readonly nfs_exported: boolean;
  readonly webdav_running: boolean;
}

/** Runs a client to its end; killed at the deadline. */
export async function runClient(
  command: string,
  args: readonly string[],
  timeoutMs = 20_000,
): Promise<ClientResult> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: '/nonexistent' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  try {
    await within(`${command} ${args.join(' ')}`, timeoutMs, once(child, 'close'));
  } finally {
    child.kill('SIGKILL');
  }
  return { code: child.exitCode, output };
}

export interface SmbAccess {
  readonly port: number;
  /** `name%password`; nobody in particular when left out. */
  readonly user?: string;
}

/**
 * Runs commands of smbclient in a share, separated by `;`. Rejects after the deadline of `runClient`.
 */
export function smb(share: string, commands: string, { port, user }: SmbAccess): Promise<ClientResult> {
  const login = user === undefined ? ['-N'] : ['-U', user];
  return runClient('smbclient', [
    `//127.0.0.1/${share}`,
    '-p',
    String(port),
    ...login,
    '-m',
    'SMB3',
    '-c',
    commands,
  ]);
}

/** A session that stays open: commands go to one smbclient, one after the other. */
export class SmbSession {
  private readonly child: ChildProcessWithoutNullStreams;
  private output = '';
  private marks = 0;

  constructor(share: string, access: { port: number; user: string }, scratch: Scratch) {
    this.child = spawn(
      'stdbuf',
      [
        '-o0',
        'smbclient',
        `//127.0.0.1/${share}`,
        '-p',
        String(access.port),
        '-U',
        access.user,
        '-m',
        'SMB3',
      ],
      { stdio: 'pipe', env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: '/nonexistent' } },
    );
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.on('data', (piece: Buffer) => (this.output += piece.toString()));
    this.child.stdin.on('error', () => undefined);
    scratch.defer(() => this.child.kill('SIGKILL'));
  }

  /** False once smbclient has ended. */
  get isOpen(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Kills smbclient. */
  close(): void {
    this.child.kill('SIGKILL');
  }

  /** What the client printed for the command. */
  async run(command: string, timeoutMs = 15_000): Promise<string> {
    this.marks += 1;
    const mark = `mark-${this.marks}-end`;
    const from = this.output.length;
    // A word that the client does not know is answered by its name: the command before it is done then.
    this.child.stdin.write(`${command}\n${mark}\n`);
    await until(
      `smbclient has done "${command}"`,
      () => {
        // It looks at what it has read already only when more comes.
        this.child.stdin.write('\n');
        return !this.isOpen || this.output.slice(from).includes(`${mark}: command not found`);
      },
      { timeoutMs, everyMs: 30 },
    );
    // Without a mark it has ended, and said why.
    return this.output.slice(from).split(`${mark}: command not found`)[0] ?? '';
  }
}

/** A file of random bytes on the local disk. */
export async function localFile(
  scratch: Scratch,
  name: string,
  bytes: number,
): Promise<{ readonly path: string; readonly sum: string }> {
  const path = scratch.path(name);
  const content = randomBytes(bytes);
  await writeFile(path, content);
  return { path, sum: createHash('sha256').update(content).digest('hex') };
}

/** SHA-256 of a local file, in hexadecimal. */
export async function sumOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

/** The status with the fields of the exporters. */
export async function exportStatus(daemon: Daemon): Promise<ExportStatus> {
  return (await daemon.get<ExportStatus>('/api/status')).body;
}

type Flag = 'smbd_running' | 'nfs_exported' | 'webdav_running';

/**
 * Until the status says so: it is as old as the last cycle, and says a moment later what clients see already.
 */
export async function flagged(
  daemon: Daemon,
  wanted: Partial<Readonly<Record<Flag, boolean>>>,
  timeoutMs = 20_000,
): Promise<void> {
  await until(
    `the status says ${JSON.stringify(wanted)}`,
    async () => {
      const now = await exportStatus(daemon);
      return Object.entries(wanted).every(([flag, is]) => now[flag as Flag] === is);
    },
    { timeoutMs },
  );
}

/** The answer of `/api/notices`, as text. */
export async function notices(daemon: Daemon): Promise<string> {
  return (await daemon.get('/api/notices')).text;
}
