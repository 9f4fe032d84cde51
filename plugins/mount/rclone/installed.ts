import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Processes, ShortCommandResult } from 'mountkeeper';
import { parseProviders } from '../options/providers.ts';
import type { Provider } from '../options/providers.ts';
import { RcloneMemory } from './installed-cache.ts';

const ASK_TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 16 * 1_048_576;
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin'];

/** The oldest rclone that mounts shares: all that this plugin asks of one is there from this version on. */
const FLOOR = [1, 70] as const;

/** One installed rclone. */
export interface Rclone {
  readonly command: string;
  /** First line of `rclone version`, for people. */
  readonly version: string;
}

export interface RcloneFinder {
  /** Rejects with a plain sentence when it is missing, does not run or is too old. */
  find(command: string): Promise<Rclone>;
  providers(command: string): Promise<readonly Provider[]>;
  /** Keeps what the binaries answer in this state folder from now on. */
  rememberIn(stateDir: string): void;
}

export function notInstalled(command: string): string {
  return `rclone is not installed or not at "${command}": ${HOW_TO_GET_IT}`;
}

const HOW_TO_GET_IT =
  'run "npm run setup" in the folder of Mountkeeper, or install one from https://rclone.org/downloads/ and set mount.rclone to its path';

/** Why this version cannot be used; undefined when it can, or says no number. */
export function tooOld(version: string): string | undefined {
  const [, major, minor] = /v(\d{1,4})\.(\d{1,4})/.exec(version.slice(0, 200)) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  const isOld = Number(major) < FLOOR[0] || (Number(major) === FLOOR[0] && Number(minor) < FLOOR[1]);
  return isOld
    ? `${version} is too old, Mountkeeper needs ${FLOOR.join('.')} or later: ${HOW_TO_GET_IT}`
    : undefined;
}

/** The file that a command name stands for, and its age: the key under which answers are kept. */
export async function locate(command: string): Promise<string | undefined> {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...SYSTEM_FOLDERS,
  ];
  const candidates = isAbsolute(command) ? [command] : folders.map((folder) => join(folder, command));
  for (const candidate of candidates) {
    const found = await stat(candidate).catch(() => undefined);
    if (found?.isFile() === true && (found.mode & 0o111) !== 0)
      return `${candidate}@${found.mtimeMs}@${found.size}`;
  }
  return undefined;
}

export function createRcloneFinder(processes: Processes): RcloneFinder {
  const known = new Map<string, Promise<Rclone>>();
  const backends = new Map<string, Promise<readonly Provider[]>>();
  let memory: RcloneMemory | undefined;
  return {
    rememberIn: (stateDir) => {
      memory ??= new RcloneMemory(stateDir);
    },
    find: (command) =>
      once(known, command, async (binary) => {
        const version = (await memory?.recall(binary)) ?? (await askVersion(processes, command));
        const problem = tooOld(version);
        if (problem !== undefined) throw new Error(problem);
        await memory?.keep(binary, version);
        return { command, version };
      }),
    providers: (command) =>
      once(backends, command, async (binary) => {
        const recalled = await memory?.recallProviders(binary);
        if (recalled) return recalled;
        const providers = parseProviders((await run(processes, command, ['config', 'providers'])).stdout);
        await memory?.keepProviders(binary, providers);
        return providers;
      }),
  };
}

/** Keeps answers per binary; one that failed is asked again. */
async function once<T>(
  answers: Map<string, Promise<T>>,
  command: string,
  fetch: (binary: string) => Promise<T>,
): Promise<T> {
  const key = await locate(command);
  if (key === undefined) throw new Error(notInstalled(command));
  const answer = answers.get(key) ?? fetch(key);
  answers.set(key, answer);
  answer.catch(() => answers.delete(key));
  return answer;
}

async function run(
  processes: Processes,
  command: string,
  args: readonly string[],
): Promise<ShortCommandResult> {
  const result = await processes.run({
    command,
    args: ['--config', '', ...args],
    timeoutMs: ASK_TIMEOUT_MS,
    maxOutputBytes: MAX_ANSWER_BYTES,
  });
  if (result.code !== 0)
    throw new Error(
      `${command} ${args.join(' ')} failed: ${result.stderr.trim().split('\n').at(-1) ?? 'no reason given'}`,
    );
  return result;
}

async function askVersion(processes: Processes, command: string): Promise<string> {
  return (await run(processes, command, ['version'])).stdout.split('\n')[0] ?? '';
}

const obscured = new WeakMap<Processes, Map<string, Promise<string>>>();

/**
 * The text as rclone wants passwords in its configuration. Goes in by standard input: a command line can be
 * read by everyone. Remembered, since every probe and every mount needs it and each time costs a process.
 */
export function obscure(processes: Processes, command: string, text: string): Promise<string> {
  if (text === '') return Promise.resolve('');
  const known = obscured.get(processes) ?? new Map<string, Promise<string>>();
  obscured.set(processes, known);
  const key = createHash('sha256').update(text).digest('base64');
  const answer = known.get(key) ?? askObscured(processes, command, text);
  known.set(key, answer);
  answer.catch(() => known.delete(key));
  return answer;
}

async function askObscured(processes: Processes, command: string, text: string): Promise<string> {
  const result = await processes.run({
    command,
    args: ['--config', '', 'obscure', '-'],
    input: text,
    timeoutMs: ASK_TIMEOUT_MS,
  });
  if (result.code !== 0) throw new Error('rclone could not obscure a password');
  return result.stdout.trim();
}
