/**
 * `mountkeeper support`: writes one archive with what a helper needs, without secrets. Works with and
 * without a running daemon, and with an invalid configuration; changes nothing.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, open, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import { dirname, join, resolve, sep } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { promisify } from 'node:util';
import type { CliContext } from '../../contract/cli.ts';
import type { Config } from '../../contract/config.ts';
import { createMountTable } from '../../platform/mounts/mount-table.ts';
import { packageVersion } from '../../platform/package.ts';
import { problemLines } from '../check-command.ts';
import type { Invocation } from '../invocation.ts';
import { runDoctor } from '../doctor-command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Terminal } from '../terminal.ts';
import { createScrub, secretsIn, secretsNamedIn, textsIn } from './support-scrub.ts';
import type { Scrub } from './support-scrub.ts';

const LOG_BYTES = 512 * 1024;
const COMMAND_MS = 10_000;
const ASKED = ['status', 'notices', 'plugins', 'bwlimit', 'queue'];
const PROGRAMS: readonly (readonly string[])[] = [
  ['rclone', 'version'],
  ['fusermount3', '-V'],
  ['smbd', '-V'],
  ['ganesha.nfsd', '-v'],
  ['bindfs', '--version'],
  ['systemctl', '--version'],
];
const README = `What "mountkeeper support" gathered, for somebody who is to help.

Passwords, keys and tokens are taken out: those of the configuration wherever they stand, and whatever looks
like one. The names of shares, hosts, users and files are not: look through the files before you hand them to
others.
`;

type Files = Map<string, string>;

export async function runSupport(invocation: Invocation, context: CliContext): Promise<number> {
  const { args, offline, terminal } = invocation;
  const problem = problemOf(args.rest);
  if (problem !== undefined) {
    terminal.printError(`mountkeeper support: ${problem}`);
    return EXIT.usage;
  }
  const stamp = new Date(offline.clock.now())
    .toISOString()
    .slice(0, 19)
    .replaceAll(/[-:]/g, '')
    .replace('T', '-');
  const name = `mountkeeper-support-${stamp}`;
  const target = resolve(args.rest[0] ?? `${name}.tar.gz`);
  const isThere = await lstat(target).then(
    () => true,
    () => false,
  );
  if (isThere) return refuse(terminal, target);
  const gathered = await gather(invocation, context);
  if (!(await isWritten(target, name, gathered))) return refuse(terminal, target);
  terminal.print(
    args.json
      ? JSON.stringify({ file: target })
      : `${target}\nLook through it before you hand it to others: it names shares, hosts and files.`,
  );
  return EXIT.ok;
}

function refuse(terminal: Pick<Terminal, 'printError'>, target: string): number {
  terminal.printError(`mountkeeper support: ${target} is there already; give another name`);
  return EXIT.usage;
}

interface Gathered {
  readonly files: Files;
  readonly scrub: Scrub;
}

/**
 * False where something is there. Others may own the folder, and put a link there at any moment: what is written is the
 * file that was made, which nobody else can read.
 */
async function isWritten(target: string, name: string, gathered: Gathered): Promise<boolean> {
  const file = await open(target, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') return undefined;
    throw error;
  });
  if (!file) return false;
  try {
    await writeArchive(file, name, gathered);
    return true;
  } catch (error) {
    // Half of an archive, as on a full disk, is none.
    await rm(target, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

async function gather(invocation: Invocation, context: CliContext): Promise<Gathered> {
  const { offline } = invocation;
  const files: Files = new Map([['README.txt', README]]);
  const { config, scrub } = await readConfig(invocation, files);
  const found = await doctor(invocation);
  // Looked through for that, the plugin that mounts says with what.
  files.set('versions.txt', await versions(offline.host.service('rclone')?.command));
  files.set('doctor.txt', found);
  for (const what of ASKED) files.set(`${what}.json`, await asked(context, what));
  await addLogs(files, config);
  return { files, scrub };
}

/** A file whose name begins with a dash is written as `./-name`. */
function problemOf([file, ...more]: readonly string[]): string | undefined {
  if (file?.startsWith('-') === true) return `it has no option "${file}"; give the file alone`;
  return more.length > 0 ? 'it writes one file; give one name' : undefined;
}

async function readConfig(
  { offline, configFile }: Invocation,
  files: Files,
): Promise<{ config: Config | undefined; scrub: Scrub }> {
  const own = [process.env['MOUNTKEEPER_PASSWORD'] ?? ''];
  const check = await offline.config.loadFile();
  if (!check.ok) {
    // One that cannot be read has no secrets to look for; the check has said why.
    const text = await readFile(configFile, 'utf8').catch(() => '');
    files.set(
      'configuration.txt',
      `not valid, so it is left out\n${problemLines(configFile, check).join('\n')}\n`,
    );
    const mounts = await createMountTable().list();
    const ours = mounts.filter(({ source }) => /^mountkeeper(?:-layer)?:/.test(source));
    const named = secretsNamedIn(
      text,
      offline.secrets,
      ours.map(({ mountPoint }) => mountPoint),
    );
    return { config: undefined, scrub: createScrub([...own, ...textsIn(text), ...named]) };
  }
  offline.config.commit(check.loaded);
  const shown = offline.config.redacted();
  files.set('configuration.json', `${JSON.stringify(shown, null, 2)}\n`);
  const secrets = await secretsIn(check.loaded.config, shown, offline.secrets);
  return { config: check.loaded.config, scrub: createScrub([...own, ...secrets]) };
}

async function versions(command: string | undefined): Promise<string> {
  const rclone = command === undefined || command === '' ? [] : [[command, 'version']];
  // Some systems have none.
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const lines = [
    `mountkeeper ${await packageVersion()}`,
    `node ${process.version} ${process.arch}`,
    `linux ${release()}`,
    system,
  ];
  for (const [command = '', ...args] of [...PROGRAMS, ...rclone])
    lines.push(`$ ${command} ${args.join(' ')}\n${await said(command, args)}`);
  return `${lines.join('\n')}\n`;
}

async function said(command: string, args: readonly string[]): Promise<string> {
  const run = promisify(execFile)(command, args, { timeout: COMMAND_MS });
  return run.then(
    ({ stdout, stderr }) => `${stdout}${stderr}`,
    (error: Error) => error.message,
  );
}

async function doctor(invocation: Invocation): Promise<string> {
  const lines: string[] = [];
  const terminal = {
    ...invocation.terminal,
    print: (text: string) => void lines.push(text),
    printError: (text: string) => void lines.push(text),
    table: (rows: readonly (readonly string[])[]) => lines.push(...rows.map((row) => row.join('\t'))),
  };
  const failed = await runDoctor({ ...invocation, terminal, args: { ...invocation.args, json: false } }).then(
    () => '',
    String,
  );
  return `${lines.join('\n')}\n${failed}`;
}

async function asked({ request }: CliContext, what: string): Promise<string> {
  return request('GET', `/api/${what}`).then(
    ({ body }) => body,
    (error: Error) => JSON.stringify({ notAnswered: error.message }),
  );
}

async function addLogs(files: Files, config: Config | undefined): Promise<void> {
  const { file = '' } = config?.log ?? {};
  if (file !== '' && !isBelowMount(file, config)) files.set('logs/daemon.log', await tail(file));
  else
    files.set(
      'logs/journal.txt',
      await said('journalctl', ['--unit=mountkeeper', '--lines=3000', '--no-pager', '--output=short-iso']),
    );
  const state = config?.supervisor.state_dir ?? '/var/lib/mountkeeper';
  for (const path of await logsBelow(state, 3))
    files.set(`logs/${path.slice(state.length + 1).replaceAll(sep, '-')}`, await tail(path));
}

/** Reading a file below a hung mount would never return. */
function isBelowMount(file: string, config: Config | undefined): boolean {
  return config?.shares.some(({ mount_point: at }) => file.startsWith(`${at}${sep}`)) ?? true;
}

/** Logs of rclone, smbd, Ganesha and the WebDAV proxy. Skips folders in which shares are mounted. */
async function logsBelow(folder: string, depth: number): Promise<readonly string[]> {
  // A folder that is not there, or not ours to read, has no logs for the bundle.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory())
        return depth > 0 && entry.name !== 'mount' && entry.name !== 'plugins'
          ? logsBelow(path, depth - 1)
          : [];
      return entry.isFile() && /\.log(?:\.\d+)?$/.test(entry.name) ? [path] : [];
    }),
  );
  return found.flat();
}

async function tail(file: string): Promise<string> {
  const handle = await open(file, 'r').catch((error: Error) => error);
  if (handle instanceof Error) return handle.message;
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.min(size, LOG_BYTES));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size - buffer.length);
    const text = buffer.subarray(0, bytesRead).toString();
    // The first line may be cut, and with it the word that marks a secret.
    return size > LOG_BYTES ? text.slice(text.indexOf('\n') + 1) : text;
  } finally {
    await handle.close();
  }
}

async function writeArchive(
  { fd }: Pick<FileHandle, 'fd'>,
  name: string,
  { files, scrub }: Gathered,
): Promise<void> {
  const room = await mkdtemp(join(tmpdir(), 'mountkeeper-support-'));
  try {
    for (const [path, text] of files) {
      const file = join(room, name, scrub(path));
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(file, scrub(text), { mode: 0o600 });
    }
    const tar = spawn('tar', ['--owner=0', '--group=0', '-cz', '-C', room, name], {
      stdio: ['ignore', fd, 'pipe'],
    });
    const [said, [code, signal]] = await Promise.all([
      tar.stderr ? textOf(tar.stderr) : '',
      once(tar, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    ]);
    if (code !== 0)
      throw new Error(`the archive was not written: ${said.trim() || `tar ended with ${code ?? signal}`}`);
  } finally {
    await rm(room, { recursive: true, force: true });
  }
}
