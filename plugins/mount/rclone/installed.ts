import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Processes, ShortCommandResult } from 'mountkeeper';
import { parseProviders } from '../options/providers.ts';
import type { Provider } from '../options/providers.ts';
import { FLOOR, isOlder, versionIn } from '../releases/versions.ts';
import { RcloneMemory } from './installed-cache.ts';

const ASK_TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 16 * 1_048_576;
const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin'];

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
  /** From now on stores the binaries' answers in this state folder. */
  rememberIn(stateDir: string): void;
}

export function notInstalled(command: string): string {
  return `rclone is not installed or not at "${command}": ${HOW_TO_GET_IT}`;
}

const HOW_TO_GET_IT =
  'run "mountkeeper rclone install", ' +
  'or install one from https://rclone.org/downloads/ and set mount.rclone to its path';

/** Why this version cannot be used; undefined when it can, or when it shows no number. */
export function tooOld(version: string): string | undefined {
  const found = versionIn(version);
  return found !== undefined && isOlder(found, FLOOR)
    ? `${version} is too old, Mountkeeper needs ${FLOOR.slice(0, 2).join('.')} or later: ${HOW_TO_GET_IT}`
    : undefined;
}

/** The file that a command name resolves to, with its age: the key of the stored answers. */
export async function locate(command: string): Promise<string | undefined> {
  const found = await programOf(command);
  return found && `${found.file}@${found.stats.mtimeMs}@${found.stats.size}`;
}

/** The file that a command name resolves to. */
export async function programOf(command: string): Promise<{ file: string; stats: Stats } | undefined> {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...SYSTEM_FOLDERS,
  ];
  const candidates = isAbsolute(command) ? [command] : folders.map((folder) => join(folder, command));
  for (const file of candidates) {
    // Not in this folder.
    const stats = await stat(file).catch(() => undefined);
    if (stats?.isFile() === true && (stats.mode & 0o111) !== 0) return { file, stats };
  }
  return undefined;
}

/** By the file of the program, with its age. */
export type KnownBackends = Map<string, Promise<readonly Provider[]>>;

/** `backends`: of other finders as well, which then ask once for all. */
export function createRcloneFinder(
  processes: Pick<Processes, 'run'>,
  backends: KnownBackends = new Map(),
): RcloneFinder {
  const known = new Map<string, Promise<Rclone>>();
  let memory: RcloneMemory | undefined;
  return {
    rememberIn: (stateDir) => {
      memory ??= new RcloneMemory(stateDir);
    },
    find: (command) =>
      once(known, command, async (binary) => {
        const recalled = await memory?.recall(binary);
        const version = recalled ?? (await askVersion(processes, command));
        const problem = tooOld(version);
        if (problem !== undefined) throw new Error(problem);
        if (recalled === undefined) await memory?.keep(binary, version);
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

/** Caches answers per binary; a failed call is repeated. */
async function once<T>(
  answers: Map<string, Promise<T>>,
  command: string,
  fetch: (binary: string) => Promise<T>,
): Promise<T> {
  const key = await locate(command);
  if (key === undefined) throw new Error(notInstalled(command));
  const answer = answers.get(key) ?? fetch(key);
  answers.set(key, answer);
  // Whoever asked hears of it; the next one asks anew.
  answer.catch(() => answers.delete(key));
  return answer;
}

async function run(
  processes: Pick<Processes, 'run'>,
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

async function askVersion(processes: Pick<Processes, 'run'>, command: string): Promise<string> {
  return (await run(processes, command, ['version'])).stdout.split('\n')[0] ?? '';
}
