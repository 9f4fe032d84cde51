/**
 * One daemon with a mounted share, a good plugin and the hostile ones: each is laid, switched on, must be told of in
 * the right words, and is mended while the daemon runs.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { Daemon } from '../daemon/daemon.ts';
import { Nas } from '../nas/nas.ts';
import { freePort } from '../platform/free-port.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import type { HostilePlugin } from './hostile-plugins.ts';
import { inState, place, plugin, runnersOf, source } from './strangers.ts';

export const PATIENCE = { timeoutMs: 90_000 };
const IMPORTS = `
import { createServer } from 'node:net';
import { readFileSync, rmSync } from 'node:fs';
void [createServer, readFileSync, rmSync];
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

  private constructor(scratch: Scratch, daemon: Daemon, port: number) {
    this.#scratch = scratch;
    this.daemon = daemon;
    this.#port = port;
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

  /** Rejects unless each is told of as it should be, and is well again once its file is. All at once. */
  async play(hostile: Readonly<Record<string, HostilePlugin>>): Promise<void> {
    const all = Object.entries(hostile);
    for (const [name, one] of all) await this.#lay(name, one);
    await this.turnOn(all.map(([name]) => name));
    await Promise.all(
      all.map(async ([name, one]) => {
        await this.#isNamed(name, one);
        await this.#isMended(name);
        if (name === 'keeps-port') await canListen(this.#port);
      }),
    );
    await this.turnOn([]);
    const { pid } = this.daemon;
    await until('only the good one runs', async () => (await runnersOf(pid)).length === 1, PATIENCE);
  }

  /** Beside the good one. */
  turnOn(names: readonly string[]): Promise<void> {
    return this.daemon.writeConfig(
      this.daemon.text({
        sections: {
          plugins: { dirs: [this.#scratch.path('plugins')] },
          ...Object.fromEntries(['good', ...names].map((name) => [`plugins.${name}`, { enabled: true }])),
        } as never,
      }),
    );
  }

  #lay(name: string, { body = '', definition = '', manifest, ...own }: HostilePlugin): Promise<void> {
    const text = own.entry?.replaceAll('NAME', name) ?? source(name, body, definition).replace('\n', IMPORTS);
    return place(this.#scratch, name, text.replace('PORT', String(this.#port)), {
      ...manifest,
      permissions: own.permissions,
    });
  }

  async #isLogged(name: string, sentence: RegExp): Promise<boolean> {
    return (await this.daemon.log())
      .replaceAll('\\"', '"')
      .split('\n')
      .some((line) => line.includes(` ${name}: `) && sentence.test(line));
  }

  /** Rejects unless it is told of the plugin what is told of it. */
  async #isNamed(name: string, { listed, logged, asked }: HostilePlugin): Promise<void> {
    const { daemon } = this;
    if (listed === undefined || asked) await inState(daemon, name, 'active', PATIENCE.timeoutMs);
    if (asked) await this.#ask(name, asked, listed === undefined);
    if (listed) {
      const said = async (): Promise<boolean> => {
        const { state = '', reason } = (await plugin(daemon, name)) ?? {};
        return state !== 'active' && listed.test(reason ?? '');
      };
      await until(`${name} is listed with ${String(listed)}`, said, PATIENCE);
    }
    if (logged)
      await until(`${name} is logged with ${String(logged)}`, () => this.#isLogged(name, logged), PATIENCE);
    if (!listed) assert.equal((await plugin(daemon, name))?.state, 'active', name);
  }

  async #ask(
    name: string,
    [path, code]: readonly [path: string, status: number],
    lives: boolean,
  ): Promise<void> {
    const asking = fetch(new URL(path, `http://127.0.0.1:${this.daemon.port}/ext/${name}/`), {
      signal: AbortSignal.timeout(PATIENCE.timeoutMs),
    });
    // One whose process ends meanwhile answers as one that is just starting.
    if (lives) assert.equal((await asking).status, code, name);
    else await asking.catch(() => undefined);
  }

  async #isMended(name: string): Promise<void> {
    await place(this.#scratch, name, source(name, WELL));
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
