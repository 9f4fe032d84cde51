/**
 * Sequences of operations on a share with a write layer, with a fault after each: at the end the NAS holds
 * what was acknowledged, and nothing else. Each sequence has a folder of its own, and one fault strikes all
 * of them.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stackPaths } from '../../../plugins/mount/layer/paths.ts';
import { Daemon } from '../daemon/daemon.ts';
import { ShareWorkerPool } from './share-worker-pool.ts';
import { BEGINNING, carryOut, sequences } from './operations.ts';
import type { Step } from './operations.ts';
import { differences, treeOf } from './folder-tree.ts';
import { Nas } from '../nas/nas.ts';
import type { NasProtocol } from '../nas/nas.ts';
import { allProcesses } from '../platform/processes.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import { createScratch } from '../platform/scratch-folder.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';

export interface Choice {
  /** Operations in a sequence. */
  readonly length: number;
  /** Every so many-th of all sequences, from this one on. */
  readonly every: number;
  readonly from?: number;
  /** Those whose operations, joined by commas, this expression finds. */
  readonly only?: RegExp;
  /** Of the NAS. */
  readonly protocol?: NasProtocol;
  /** All faults strike one daemon, one after the other, each in a folder of its own; else each has a daemon. */
  readonly isShared?: boolean;
}

const CACHED = ['cached', 'partly cached', 'not cached'] as const;
/** A machine that has other work takes its time. */
const SYNCED_MS = 900_000;
const rclone = currentRclone();

interface Bench {
  readonly nas: Nas;
  readonly daemon: Daemon;
  readonly hands: ShareWorkerPool;
  readonly model: string;
}

export interface Fault {
  readonly name: string;
  /** After each operation but the last. */
  readonly between: (bench: Bench) => Promise<void>;
  /** After the last one. */
  readonly atEnd: (bench: Bench) => Promise<void>;
}

const nothing = (): Promise<void> => Promise.resolve();

async function killDaemon({ daemon }: Bench): Promise<void> {
  await daemon.end();
  await daemon.start();
  await daemon.healthy(['s']);
}

function isMounted(path: string, source: string): boolean {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  return lines.some((fields) => fields[4] === path && fields.includes(source));
}

async function killRclone({ daemon }: Bench): Promise<void> {
  const former = await daemon.rclonePid('s');
  process.kill(former, 'SIGKILL');
  const { place } = stackPaths(daemon.stateDir, 's');
  // The former one is taken off before the next one starts.
  await until(
    'another rclone serves the share',
    async () => (await daemon.rclonePid('s')) !== former && isMounted(place, 'mountkeeper:s'),
    { timeoutMs: 60_000, everyMs: 20 },
  );
}

async function reconnect({ daemon }: Bench): Promise<void> {
  const { through } = stackPaths(daemon.stateDir, 's');
  const bindfs = async (): Promise<number | undefined> =>
    (await allProcesses()).find(({ args }) => args.includes(through))?.pid;
  const former = await bindfs();
  await daemon.request('POST', '/api/reconnect/s');
  const isAnew = async (): Promise<boolean> =>
    ![undefined, former].includes(await bindfs()) && isMounted(daemon.mountPoint('s'), 'mountkeeper-layer:s');
  await until('the share is mounted anew', isAnew, { timeoutMs: 60_000 });
  await daemon.healthy(['s']);
}

/** An end with exit 0 says that all is on the NAS. */
async function stop(bench: Bench): Promise<void> {
  const { daemon } = bench;
  const { code } = await daemon.stop('SIGTERM', SYNCED_MS);
  assert.equal(code, 0);
  await assertOnNas(bench, 'after a stop with exit 0');
  await daemon.start();
  await daemon.healthy(['s']);
}

/** What is done to the share after an operation. */
export const FAULTS: readonly Fault[] = [
  { name: 'no fault', between: nothing, atEnd: nothing },
  {
    name: 'time to sync',
    between: ({ daemon }) => daemon.synced(SYNCED_MS),
    atEnd: nothing,
  },
  { name: 'rclone killed', between: killRclone, atEnd: killRclone },
  { name: 'the daemon killed', between: killDaemon, atEnd: killDaemon },
  { name: 'an orderly stop', between: stop, atEnd: stop },
  { name: 'a reconnect', between: reconnect, atEnd: reconnect },
  {
    name: 'the NAS away',
    between: async ({ nas }) => nas.stop(),
    atEnd: async ({ nas, daemon }) => {
      const { all_synced: isSynced } = await daemon.status();
      assert.equal(isSynced, false, 'all_synced while the NAS is away');
      await nas.start();
    },
  },
];

async function assertOnNas({ nas, model }: Bench, when: string): Promise<void> {
  const wrong = differences(treeOf(await nas.contents('s')), treeOf(model));
  assert.deepEqual(wrong.slice(0, 40), [], `${wrong.length} paths are wrong ${when}`);
}

/**
 * A folder for each operation in the one before: rclone's servers read all folders of a path anew at each call, so
 * one folder with hundreds in it costs more than all that the share does.
 */
function folderOf(cached: string, operations: readonly string[]): string {
  const words = [cached, ...operations];
  return words.map((word) => word.replaceAll(/[ /]/g, '-')).join('/');
}

interface Case {
  readonly cached: string;
  readonly operations: readonly string[];
  /** Relative to the share. */
  readonly folder: string;
}

/** The sequences that were chosen, each with all of them beginning cached, partly cached and not cached. */
export class FaultSequences {
  readonly #length: number;
  readonly #protocol: NasProtocol;
  readonly #isShared: boolean;
  readonly #chosen: readonly Case[];
  readonly #scratches: Scratch[] = [];
  #bench: Promise<Bench> | undefined;

  constructor({ length, every, from = 0, only = /^/, protocol = 'sftp', isShared = false }: Choice) {
    this.#protocol = protocol;
    this.#isShared = isShared;
    this.#length = length;
    this.#chosen = CACHED.flatMap((cached) =>
      sequences(length).map((operations) => ({ cached, operations, folder: folderOf(cached, operations) })),
    ).filter(({ operations }, index) => index % every === from && only.test(operations.join(',')));
  }

  /** Ends daemon and workers, and removes their folder. */
  async close(): Promise<void> {
    this.#bench = undefined;
    for (const scratch of this.#scratches.splice(0)) await scratch.close();
  }

  /**
   * Resolves with what was done; rejects when anything is on the NAS, or shown, that was not acknowledged, or
   * is missing.
   */
  async run(fault: Fault): Promise<string> {
    const times: string[] = [];
    let since = performance.now();
    const lap = (name: string): void => {
      times.push(`${name} ${((performance.now() - since) / 1_000).toFixed(1)} s`);
      since = performance.now();
    };
    const bench = await (this.#isShared ? (this.#bench ??= this.#setUp(FAULTS)) : this.#setUp([fault]));
    const { daemon, hands, model } = bench;
    const cases = this.#casesOf(fault);
    lap('set up');
    const root = daemon.mountPoint('s');
    await hands.read(root, filesOf(cases, 'cached'), 256 * 1024);
    await hands.read(root, filesOf(cases, 'partly cached'), 500);
    lap('read');
    let done = 0;
    for (let place = 0; place < this.#length; place += 1) {
      done += await carryOutAt(place, cases, bench);
      lap('operations');
      await (place < this.#length - 1 ? fault.between(bench) : fault.atEnd(bench));
      lap('fault');
    }
    await daemon.synced(SYNCED_MS);
    lap('sync');
    await assertOnNas(bench, 'while all_synced is true');
    // While a folder is moved on the NAS, what only lies there is out of sight for a moment.
    const roots = [...new Set(cases.map(({ folder }) => folder.slice(0, folder.indexOf('/'))))];
    // Of another fault's folders nothing may be read before it is its turn.
    const wanted = Object.fromEntries(
      Object.entries(treeOf(model)).filter(([path]) => roots.includes(path.split('/')[0] ?? '')),
    );
    const wrong = async (): Promise<readonly string[]> => differences(await hands.trees(root, roots), wanted);
    await until('the share shows the same', async () => (await wrong()).length === 0, {
      timeoutMs: 30_000,
      everyMs: 500,
    }).catch(async () =>
      assert.deepEqual((await wrong()).slice(0, 40), [], 'the share shows something else'),
    );
    lap('look');
    return (
      `${cases.length} sequences, ${done} operations done, ` +
      `${cases.length * this.#length - done} refused; ${times.join(', ')}`
    );
  }

  #casesOf({ name }: Fault): readonly Case[] {
    if (!this.#isShared) return this.#chosen;
    return this.#chosen.map((one) => ({ ...one, folder: `${name.replaceAll(' ', '-')}/${one.folder}` }));
  }

  async #setUp(faults: readonly Fault[]): Promise<Bench> {
    const scratch = await createScratch('layer-all');
    this.#scratches.push(scratch);
    const nas = await Nas.create(scratch, {
      start: false,
      protocol: this.#protocol,
    });
    const model = scratch.path('model');
    for (const { folder } of faults.flatMap((fault) => this.#casesOf(fault))) {
      for (const [path, bytes] of Object.entries(BEGINNING)) {
        mkdirSync(join(nas.path('s'), folder, 'f'), { recursive: true });
        writeFileSync(join(nas.path('s'), folder, path), Buffer.alloc(bytes, `${folder} ${path} `));
      }
    }
    cpSync(nas.path('s'), model, { recursive: true });
    await nas.start();
    const daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [{ name: 's', connection: 'nas', remote_path: nas.remotePath('s') }],
      sections: {
        mount: {
          chunk_size: '64k',
          chunk_limit: '64k',
          read_ahead: '0',
          buffer_size: '0',
        },
        supervisor: { stop_timeout: '900s' },
      },
    });
    await daemon.start();
    await daemon.healthy(['s'], 90_000);
    return { nas, daemon, hands: new ShareWorkerPool(scratch), model };
  }
}

function filesOf(cases: readonly Case[], cached: string): string[] {
  return cases
    .filter((one) => one.cached === cached)
    .flatMap(({ folder }) => Object.keys(BEGINNING).map((path) => `${folder}/${path}`));
}

/**
 * The operations at one place of all sequences, on the share and on the model. Resolves with how many were
 * acknowledged.
 */
async function carryOutAt(
  place: number,
  cases: readonly Case[],
  { daemon, hands, model }: Bench,
): Promise<number> {
  const steps = cases.map(({ folder, operations }, index): Step => ({
    folder,
    operation: operations[place] ?? '',
    seed: index * 10 + place,
  }));
  const answers = await hands.steps(daemon.mountPoint('s'), steps);
  const acknowledged = steps.filter((_, index) => answers[index] === null);
  for (const step of acknowledged) {
    const error = carryOut(model, step);
    const { operations } = cases[steps.indexOf(step)] ?? {};
    assert.equal(
      error,
      undefined,
      `${operations?.join(', ')}: done on the share, though the model says ${error}`,
    );
  }
  return acknowledged.length;
}
