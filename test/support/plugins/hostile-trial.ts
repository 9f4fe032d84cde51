/**
 * One daemon with a mounted share, a good plugin and the hostile ones: each is laid, switched on, must be told of in
 * the right words, and is mended while the daemon runs.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chown } from 'node:fs/promises';
import { createServer } from 'node:net';
import { Daemon } from '../daemon/daemon.ts';
import { Nas } from '../nas/nas.ts';
import { freePort } from '../platform/free-port.ts';
import { allProcesses } from '../platform/processes.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import type { Asked, HostilePlugin } from './hostile-plugins.ts';
import { inState, place, plugin, runnersOf, source } from './strangers.ts';

/** Dozens of plugins are waited for at once: closer looks at the list and the log keep the machine busy. */
export const PATIENCE = { timeoutMs: 90_000, everyMs: 500 };
const IMPORTS = `
import { connect, createServer } from 'node:net';
import { readFileSync, rmSync } from 'node:fs';
void [connect, createServer, readFileSync, rmSync];
`;
/** What any of them does once it is mended. */
export const WELL = "ctx.route({ method: 'GET', path: '/', handler: () => 'well' });";
const GOOD = `let beats = 0;
  ctx.every({ name: 'beat', ms: () => 100, run: async () => { beats += 1; } });
  ctx.route({ method: 'GET', path: '/', handler: () => ({ beats, pid: process.pid }) });`;

/** Rejects when the port is taken. */
async function canListen(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
}

export class HostileTrial {
  readonly daemon: Daemon;
  readonly #scratch: Scratch;
  /** One of them takes it and keeps it. */
  readonly #port: number;
  /** Seconds that the children of one sleep, as their argument. */
  readonly #leaked: string;
  /** What is being played, with the keys of each. */
  readonly #on = new Map<string, Readonly<Record<string, number>>>();
  #format: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(scratch: Scratch, daemon: Daemon, port: number) {
    this.#scratch = scratch;
    this.daemon = daemon;
    this.#port = port;
    this.#leaked = `${port}.25`;
  }

  /** Resolves once the share `files`, with `a.bin`, is mounted and the good plugin is active. */
  static async start(scratch: Scratch): Promise<HostileTrial> {
    const port = await freePort();
    const nas = await Nas.create(scratch, { files: { 'a.bin': 100_000 } });
    await place(scratch, 'good', source('good', GOOD), { permissions: [] });
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { plugins: { dirs: [scratch.path('plugins')] }, 'plugins.good': { enabled: true } },
    });
    await daemon.start(60_000);
    await daemon.healthy();
    await inState(daemon, 'good', 'active');
    return new HostileTrial(scratch, daemon, port);
  }

  /**
   * Rejects unless each is told of as it should be, and is well again once its file is. All at once, also beside what
   * is being played already.
   */
  async play(hostile: Readonly<Record<string, HostilePlugin>>): Promise<void> {
    const all = Object.entries(hostile);
    for (const [name, one] of all) await this.#lay(name, one);
    for (const [name, { table }] of all) this.#on.set(name, table?.[0] ?? {});
    const format = all.map(([, one]) => one.format).find((one) => one !== undefined);
    this.#format = format ?? this.#format;
    await this.turnOn();
    try {
      await Promise.all(all.map(([name, one]) => this.#playOne(name, one)));
    } finally {
      for (const [name] of all) this.#on.delete(name);
      if (format !== undefined) this.#format = undefined;
      await this.turnOn();
    }
    const { pid } = this.daemon;
    const isRest = async (): Promise<boolean> => (await runnersOf(pid)).length === 1 + this.#on.size;
    await until('only the good one runs, and what is played beside', isRest, PATIENCE);
    const isLeft = async (): Promise<boolean> =>
      (await allProcesses()).some(({ args }) => args.includes(this.#leaked));
    await until('what it has started is gone', async () => !(await isLeft()), PATIENCE);
  }

  async #playOne(name: string, one: HostilePlugin): Promise<void> {
    await this.#isNamed(name, one);
    await this.#isMended(name, one);
    if (one.loggedAtEnd) await this.#awaitLog(name, one.loggedAtEnd);
    if (name === 'keeps-port') await canListen(this.#port);
  }

  /** Beside the good one and what is being played. One writes the file at a time. */
  turnOn(more: readonly string[] = []): Promise<void> {
    const writing = this.#writing.then(() => this.daemon.writeConfig(this.#config(more)));
    this.#writing = writing;
    return writing;
  }

  #config(more: readonly string[]): string {
    const tables = [...[...more, 'good'].map((name) => [name, {}] as const), ...this.#on];
    return this.daemon.text({
      sections: {
        plugins: { dirs: [this.#scratch.path('plugins')] },
        ...Object.fromEntries(tables.map(([name, keys]) => [`plugins.${name}`, { enabled: true, ...keys }])),
        ...(this.#format !== undefined && {
          notifications: { webhook_url: 'http://192.0.2.1/x', webhook_format: this.#format },
        }),
      },
    });
  }

  async #lay(
    name: string,
    { body = '', definition = '', manifest, owner, ...own }: HostilePlugin,
  ): Promise<void> {
    const text = own.entry?.replaceAll('NAME', name) ?? source(name, body, definition).replace('\n', IMPORTS);
    await place(
      this.#scratch,
      name,
      text.replace('PORT', String(this.#port)).replace('LEAKED', this.#leaked),
      { ...manifest, permissions: own.permissions },
    );
    if (owner !== undefined) await chown(this.#scratch.path('plugins', name), owner, owner);
  }

  /** By its name, whoever says it. */
  async #awaitLog(
    name: string,
    sentence: RegExp,
    { timeoutMs }: { readonly timeoutMs: number } = PATIENCE,
  ): Promise<void> {
    const isThere = async (): Promise<boolean> =>
      (await this.daemon.log())
        .replaceAll('\\"', '"')
        .split('\n')
        .some((line) => line.includes(name) && sentence.test(line));
    await until(`${name} is logged with ${String(sentence)}`, isThere, { ...PATIENCE, timeoutMs });
  }

  /** Rejects unless it is told of the plugin what is told of it. */
  async #isNamed(name: string, one: HostilePlugin): Promise<void> {
    const { listed, logged = [], asked = [] } = one;
    await this.#comesUp(name, one);
    await Promise.all(asked.map((one) => this.#ask(name, one, listed === undefined)));
    if (listed) await this.#isListed(name, listed);
    const patience = { timeoutMs: one.withinMs ?? PATIENCE.timeoutMs };
    for (const sentence of [logged].flat()) await this.#awaitLog(name, sentence, patience);
    if (!listed) assert.equal((await plugin(this.daemon, name))?.state, 'active', name);
  }

  async #comesUp(name: string, { listed, asked, table }: HostilePlugin): Promise<void> {
    if (!listed || asked) await inState(this.daemon, name, 'active', PATIENCE.timeoutMs);
    if (!table) return;
    this.#on.set(name, table[1]);
    await this.turnOn();
  }

  async #isListed(name: string, sentence: RegExp): Promise<void> {
    const said = async (): Promise<boolean> => {
      const { state = '', reason } = (await plugin(this.daemon, name)) ?? {};
      return state !== 'active' && sentence.test(reason ?? '');
    };
    await until(`${name} is listed with ${String(sentence)}`, said, PATIENCE);
  }

  async #ask(name: string, [path, code, method]: Asked, lives: boolean): Promise<void> {
    const asking = fetch(new URL(path, `http://127.0.0.1:${this.daemon.port}/ext/${name}/`), {
      ...(method && { method, body: new URLSearchParams({ x: 'x' }) }),
      signal: AbortSignal.timeout(PATIENCE.timeoutMs),
    });
    // One whose process ends meanwhile answers as one that is just starting.
    if (lives) assert.equal((await asking).status, code, `${name}: ${path}`);
    else await asking.catch(() => undefined);
  }

  /** As the reason says, where it belongs to somebody else; else by a new file. */
  async #mend(name: string, { table, definition, owner }: HostilePlugin): Promise<void> {
    if (owner === undefined) return place(this.#scratch, name, source(name, WELL, table && definition));
    await chown(this.#scratch.path('plugins', name), 0, 0);
    this.daemon.signal('SIGHUP');
  }

  async #isMended(name: string, one: HostilePlugin): Promise<void> {
    await this.#mend(name, one);
    await until(
      `${name} is well`,
      async () => {
        const answer = await this.daemon.get<string>(`/ext/${name}`);
        return answer.status === 200 && (await plugin(this.daemon, name))?.state === 'active';
      },
      PATIENCE,
    );
  }
}
