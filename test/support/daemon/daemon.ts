/**
 * The built daemon as a real process: configured, started, signalled, asked over HTTP and by its command
 * line.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PACKAGE_DIR } from '../../../core/platform/package.ts';
import { configText } from '../config/config-text.ts';
import type { ConfigParts, TomlValue } from '../config/config-text.ts';
import { freePort } from '../platform/free-port.ts';
import { allProcesses, isAlive, rcloneOf } from '../platform/processes.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until, within } from '../platform/wait.ts';

/** A package folder whose daemon is run: bundled in a run of many tests, else the build as it is. */
const PACKAGE = process.env['MOUNTKEEPER_TEST_PACKAGE'] ?? PACKAGE_DIR;
/** The built entry point of the daemon and its command line. */
export const MAIN = join(PACKAGE, 'dist/core/main.js');

export interface ShareJson {
  readonly name: string;
  readonly mounted: boolean;
  readonly rc_port: number;
  readonly cache_bytes: number;
  readonly dirty_count: number;
  readonly errored_files: number;
  readonly health: string;
  readonly health_message: string | null;
}

export interface StatusJson {
  readonly uptime: string;
  readonly shares: readonly ShareJson[];
  readonly all_synced: boolean;
}

export interface ConfigAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly diff_summary: string | null;
  /** Left out: by no protocol is anybody let in any more who may not come in. */
  readonly still_open?: readonly string[];
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
  readonly text: string;
  readonly headers: Headers;
}

export interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface DaemonTraits {
  readonly connections: ConfigParts['connections'];
  readonly shares: ConfigParts['shares'];
  /** Added to or put over the sections every test has. */
  readonly sections?: ConfigParts['sections'];
  readonly rclone?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly name?: string;
  /** What is run in place of the build: an installed program, with the arguments that come first. */
  readonly program?: readonly [command: string, ...args: string[]];
}

type Method = 'GET' | 'POST';

/** One daemon with a folder, a port and a configuration of its own. Ended with its scratch folder. */
export class Daemon {
  readonly configFile: string;
  readonly logFile: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly mountRoot: string;
  readonly port: number;
  readonly traits: DaemonTraits;
  private readonly outputFile: string;
  private child: ChildProcess | undefined;
  private ended: Promise<End> = Promise.resolve({ code: null, signal: null });

  private constructor(scratch: Scratch, port: number, traits: DaemonTraits) {
    const room = scratch.path(traits.name ?? 'keeper');
    this.port = port;
    this.traits = traits;
    this.configFile = `${room}/mountkeeper.toml`;
    this.logFile = `${room}/daemon.log`;
    this.outputFile = `${room}/output.log`;
    this.stateDir = `${room}/state`;
    this.cacheDir = `${room}/cache`;
    this.mountRoot = `${room}/mnt`;
  }

  /** Writes the configuration; starts nothing. */
  static async create(scratch: Scratch, traits: DaemonTraits): Promise<Daemon> {
    const daemon = new Daemon(scratch, await freePort(), traits);
    await mkdir(daemon.mountRoot, { recursive: true });
    await daemon.writeConfig(daemon.text());
    scratch.defer(() => daemon.end());
    return daemon;
  }

  /** The configuration, with changes put over it. */
  text(changes: Partial<DaemonTraits> = {}): string {
    const base: Record<string, Record<string, TomlValue>> = {
      web: { port: this.port },
      mount: { root: this.mountRoot, rclone: this.traits.rclone ?? currentRclone(), write_back: '1s' },
      cache: { dir: this.cacheDir, min_free_space: '100M' },
      supervisor: { state_dir: this.stateDir, poll_interval: '1s', stop_timeout: '60s' },
      log: { file: this.logFile, level: 'info' },
    };
    for (const [name, keys] of [
      ...Object.entries(this.traits.sections ?? {}),
      ...Object.entries(changes.sections ?? {}),
    ]) {
      base[name] = { ...base[name], ...keys };
    }
    return configText({
      sections: base,
      connections: changes.connections ?? this.traits.connections,
      shares: changes.shares ?? this.traits.shares,
    });
  }

  /** Replaces the configuration file; a running daemon reads it by itself. */
  writeConfig(text: string): Promise<void> {
    return writeFile(this.configFile, text);
  }

  /** Where a share is mounted. */
  mountPoint(share: string): string {
    return `${this.mountRoot}/${share}`;
  }

  /** Throws when it was not started. */
  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error('the daemon is not running');
    return pid;
  }

  /** Starts the process; returns at once. */
  spawn(options: readonly string[] = []): Promise<End> {
    const output = openSync(this.outputFile, 'a');
    const [command, ...args] = this.traits.program ?? [process.execPath, MAIN];
    const child = spawn(command, [...args, 'run', '--config', this.configFile, ...options], {
      stdio: ['ignore', output, output],
      env: { PATH: process.env['PATH'], HOME: `${this.mountRoot}/..`, LANG: 'C.UTF-8', ...this.traits.env },
    });
    this.child = child;
    this.ended = once(child, 'exit').then(([code, signal]) => ({
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
    }));
    return this.ended;
  }

  /** Starts the process and waits until it answers. */
  async start(timeoutMs = 30_000, options: readonly string[] = []): Promise<this> {
    const ended = this.spawn(options);
    const failed = ended.then(async (end) => {
      throw new Error(
        `the daemon ended with ${end.code ?? end.signal} instead of answering:\n${(await this.output()).slice(-2000)}`,
      );
    });
    failed.catch(() => undefined);
    await Promise.race([
      failed,
      until('the daemon answers', async () => (await this.get('/api/status')).status === 200, {
        timeoutMs,
      }).catch(async (error: unknown) => {
        throw new Error(`${(error as Error).message}; it has said:\n${(await this.output()).slice(-4000)}`);
      }),
    ]);
    return this;
  }

  /** Sends a signal to the process. */
  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }

  /** Kills the process if it runs; resolves with how it ended. */
  end(): Promise<End> {
    if (this.child?.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    return this.ended;
  }

  /** Waits for the end of the process. Rejects at the deadline. */
  exit(timeoutMs: number): Promise<End> {
    return within('the end of the daemon', timeoutMs, this.ended);
  }

  /** Sends the signal and waits for the end. Rejects at the deadline. */
  async stop(signal: NodeJS.Signals = 'SIGTERM', timeoutMs = 60_000): Promise<End> {
    this.signal(signal);
    return this.exit(timeoutMs);
  }

  /** One request over HTTP, on loopback. Rejects without an answer within 15 s; never for a status code. */
  async request<T>(
    method: Method,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<T>> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    });
    const text = await response.text();
    const answered = (isJson(text) ? JSON.parse(text) : undefined) as T;
    return { status: response.status, body: answered, text, headers: response.headers };
  }

  /** `GET` of a path. */
  get<T>(path: string): Promise<Answer<T>> {
    return this.request<T>('GET', path);
  }

  /** Posts a document to `/api/config`. */
  submit(toml: string): Promise<Answer<ConfigAnswer>> {
    return this.request<ConfigAnswer>('POST', '/api/config', { toml });
  }

  /** The answer of `/api/status`. */
  async status(): Promise<StatusJson> {
    return (await this.get<StatusJson>('/api/status')).body;
  }

  /** The answer of `/api/status/NAME`. */
  async share(name: string): Promise<ShareJson> {
    return (await this.get<ShareJson>(`/api/status/${encodeURIComponent(name)}`)).body;
  }

  /** Waits until all the named shares (default: all) are healthy and mounted. */
  async healthy(names: readonly string[] = [], timeoutMs = 30_000): Promise<void> {
    await until(
      `shares are healthy: ${names.join(', ') || 'all'}`,
      async () => {
        const { shares } = await this.status();
        const meant = names.length === 0 ? shares : shares.filter((share) => names.includes(share.name));
        const isThere = meant.length >= Math.max(1, names.length);
        if (isThere && meant.every((share) => share.mounted && share.health === 'healthy')) return true;
        // What a test that fails is to say.
        const told = meant.map(({ name, health, health_message: why }) => `${name} is ${health}: ${why}`);
        throw new Error(told.join('; ') || 'none is there');
      },
      { timeoutMs },
    );
  }

  /**
   * Waits until nothing is left to upload, by the answer to a question that the daemon asked the shares after
   * this call: an older one knows nothing of a file that was written just now.
   */
  async synced(timeoutMs: number): Promise<void> {
    const calledAt = performance.now();
    await until(
      'all is synced',
      async () => {
        const requestedAt = performance.now();
        const { body, headers } = await this.get<StatusJson>('/api/status');
        const ageMs = Number(headers.get('mountkeeper-synced-age') ?? Infinity);
        return body.all_synced && requestedAt - ageMs >= calledAt;
      },
      { timeoutMs, everyMs: 200 },
    );
  }

  /** The id of the rclone process that serves a share now. */
  async rclonePid(share: string): Promise<number> {
    const found = await until(
      `an rclone serves ${share}`,
      async () =>
        (await rcloneOf(this.mountPoint(share))) ?? rcloneOf(`${this.stateDir}/mount/lower/${share}/fresh`),
      { timeoutMs: 30_000 },
    );
    return found.pid;
  }

  /** What lies between rclone and the share: the share is down without it. */
  async bindfsPid(share: string): Promise<number> {
    const through = `${this.stateDir}/mount/lower/${share}/through`;
    const found = await until(
      `a bindfs lies below ${share}`,
      async () =>
        (await allProcesses()).find(({ args }) => args[0]?.endsWith('bindfs') && args.includes(through)),
      { timeoutMs: 30_000 },
    );
    return found.pid;
  }

  /** Runs the command line on this configuration, for at most a minute. */
  cli(...args: string[]): Promise<CliResult> {
    return this.cliFor(60_000, ...args);
  }

  /** Runs the command line on this configuration. Rejects at the deadline. */
  cliFor(timeoutMs: number, ...args: string[]): Promise<CliResult> {
    // A probe belongs in the daemon alone.
    return runCli([...args, '--config', this.configFile], timeoutMs, {
      ...this.traits.env,
      NODE_OPTIONS: '',
    });
  }

  /** The text of its log so far; empty without one. */
  log(): Promise<string> {
    return readFile(this.logFile, 'utf8').catch(() => '');
  }

  /** What the process printed. */
  output(): Promise<string> {
    return readFile(this.outputFile, 'utf8').catch(() => '');
  }

  /** True while the process is there. */
  get alive(): boolean {
    return this.child?.pid !== undefined && isAlive(this.child.pid);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The user `nobody`, which every system has. */
export const NOBODY = { uid: 65_534, gid: 65_534, cwd: '/' };

/** Runs the built command line to its end, as another user where one is given. */
export async function runCli(
  args: readonly string[],
  timeoutMs = 60_000,
  env: Readonly<Record<string, string>> = {},
  as: Partial<typeof NOBODY> = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    ...as,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', LANG: 'C.UTF-8', ...env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece: Buffer) => (stdout += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (stderr += piece.toString()));
  try {
    await within(`mountkeeper ${args.join(' ')}`, timeoutMs, once(child, 'close'));
  } finally {
    child.kill('SIGKILL');
  }
  return { code: child.exitCode, stdout, stderr };
}
