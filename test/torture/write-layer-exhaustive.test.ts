/**
 * Every sequence of two operations on a share with a write layer, with a fault after each: at the end the NAS holds what was
 * acknowledged, and nothing else. Each sequence has a folder of its own, and one fault strikes all of them.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { stackPaths } from '../../plugins/mount/layer/paths.ts';
import { Daemon } from '../support/daemon.ts';
import { Hands } from '../support/layer/hands.ts';
import { BEGINNING, carryOut, sequences } from '../support/layer/operations.ts';
import type { Step } from '../support/layer/operations.ts';
import { differences, treeOf } from '../support/layer/tree.ts';
import { Nas } from '../support/nas.ts';
import { allProcesses } from '../support/processes.ts';
import { currentRclone } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

const LENGTH = Number(process.env['MOUNTKEEPER_SEQUENCE_LENGTH'] ?? 2);
/** Every so many-th of them, for a machine that has other work. */
const EVERY = Number(process.env['MOUNTKEEPER_SEQUENCE_EVERY'] ?? 1);
/** Only those whose operations, joined by commas, this expression finds. */
const ONLY = new RegExp(process.env['MOUNTKEEPER_SEQUENCE_ONLY'] ?? '');
const CACHED = ['cached', 'partly cached', 'not cached'] as const;
const SYNCED_MS = 240_000;
const rclone = currentRclone();

interface Bench {
  readonly scratch: Scratch;
  readonly nas: Nas;
  readonly daemon: Daemon;
  readonly hands: Hands;
  readonly model: string;
}

interface Fault {
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
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').map((line) => line.split(' '));
  return lines.some((fields) => fields[4] === path && fields.includes(source));
}

async function killRclone({ daemon }: Bench): Promise<void> {
  const former = await daemon.rclonePid('s');
  process.kill(former, 'SIGKILL');
  const { place } = stackPaths(daemon.stateDir, 's');
  // The former one is taken off before the next one starts.
  await until('another rclone serves the share', async () => (await daemon.rclonePid('s')) !== former && isMounted(place, 'mountkeeper:s'), { timeoutMs: 60_000, everyMs: 20 });
}

async function reconnect({ daemon }: Bench): Promise<void> {
  const { through } = stackPaths(daemon.stateDir, 's');
  const bindfs = async (): Promise<number | undefined> => (await allProcesses()).find(({ args }) => args.includes(through))?.pid;
  const former = await bindfs();
  await daemon.request('POST', '/api/reconnect/s');
  const isAnew = async (): Promise<boolean> => ![undefined, former].includes(await bindfs()) && isMounted(daemon.mountPoint('s'), 'mountkeeper-layer:s');
  await until('the share is mounted anew', isAnew, { timeoutMs: 60_000 });
  await daemon.healthy(['s']);
}

/** An end with exit 0 says that all is on the NAS. */
async function stop(bench: Bench): Promise<void> {
  const { daemon } = bench;
  const { code } = await daemon.stop('SIGTERM', SYNCED_MS);
  assert.equal(code, 0);
  assertOnNas(bench, 'after a stop with exit 0');
  await daemon.start();
  await daemon.healthy(['s']);
}

const FAULTS: readonly Fault[] = [
  { name: 'no fault', between: nothing, atEnd: nothing },
  { name: 'time to sync', between: ({ daemon }) => daemon.synced(SYNCED_MS), atEnd: nothing },
  { name: 'rclone killed', between: killRclone, atEnd: killRclone },
  { name: 'the daemon killed', between: killDaemon, atEnd: killDaemon },
  { name: 'an orderly stop', between: stop, atEnd: stop },
  { name: 'a reconnect', between: reconnect, atEnd: reconnect },
  {
    name: 'the NAS away', between: async ({ nas }) => nas.stop(),
    atEnd: async ({ nas, daemon }) => {
      const { all_synced: isSynced } = await daemon.status();
      assert.equal(isSynced, false, 'all_synced while the NAS is away');
      await nas.start();
    },
  },
];

function assertOnNas({ nas, model }: Bench, when: string): void {
  const wrong = differences(treeOf(nas.path('s')), treeOf(model));
  assert.deepEqual(wrong.slice(0, 40), [], `${wrong.length} paths are wrong ${when}`);
}

for (const fault of FAULTS) {
  describe(`all sequences of ${LENGTH} operations, ${fault.name}`, () => {
    let scratch: Scratch | undefined;
    const all = CACHED.flatMap((cached) => sequences(LENGTH).map((operations, index) => ({ cached, operations, folder: `${cached.replace(' ', '-')}/${index}` })))
      .filter(({ operations }, index) => index % EVERY === 0 && ONLY.test(operations.join(',')));

    // Not before all tests: those of other faults may have been left out.
    const setUp = async (): Promise<Bench> => {
      scratch = await createScratch('layer-all');
      const nas = await Nas.create(scratch, { start: false });
      const model = scratch.path('model');
      for (const { folder } of all) {
        for (const [path, bytes] of Object.entries(BEGINNING)) {
          mkdirSync(join(nas.path('s'), folder, 'f'), { recursive: true });
          writeFileSync(join(nas.path('s'), folder, path), Buffer.alloc(bytes, `${folder} ${path} `));
        }
      }
      cpSync(nas.path('s'), model, { recursive: true });
      await nas.start();
      const daemon = await Daemon.create(scratch, {
        rclone, connections: [nas.connection('nas')], shares: [{ name: 's', connection: 'nas', remote_path: 's' }],
        env: { MOUNTKEEPER_UNFINISHED: 'write-layer' },
        sections: { mount: { write_layer: true, chunk_size: '64k', chunk_limit: '64k', read_ahead: '0', buffer_size: '0' }, supervisor: { stop_timeout: '240s' } },
      });
      await daemon.start();
      await daemon.healthy(['s'], 90_000);
      return { scratch, nas, daemon, hands: new Hands(scratch), model };
    };
    after(() => scratch?.close());

    it('leave on the NAS what was acknowledged', { timeout: 900_000 }, async (t) => {
      const bench = await setUp();
      const { daemon, hands, model } = bench;
      const root = daemon.mountPoint('s');
      const filesOf = (cached: string): string[] => all.filter((one) => one.cached === cached).flatMap(({ folder }) => Object.keys(BEGINNING).map((path) => `${folder}/${path}`));
      await hands.read(root, filesOf('cached'), 256 * 1024);
      await hands.read(root, filesOf('partly cached'), 500);
      let [done, refused] = [0, 0];
      for (let place = 0; place < LENGTH; place += 1) {
        const steps = all.map(({ folder, operations }, index): Step => ({ folder, operation: operations[place] ?? '', seed: index * 10 + place }));
        const answers = await hands.steps(root, steps);
        for (const [index, step] of steps.entries()) {
          if (answers[index] !== null) refused += 1;
          else {
            done += 1;
            const error = carryOut(model, step);
            assert.equal(error, undefined, `${all[index]?.operations.join(', ')}: done on the share, though the model says ${error}`);
          }
        }
        await (place < LENGTH - 1 ? fault.between(bench) : fault.atEnd(bench));
      }
      t.diagnostic(`${all.length} sequences, ${done} operations done, ${refused} refused`);
      await daemon.synced(SYNCED_MS);
      assertOnNas(bench, 'while all_synced is true');
      // While a folder is moved on the NAS, what only lies there is out of sight for a moment.
      await until('the share shows the same', async () => differences(await hands.tree(root), treeOf(model)).length === 0, { timeoutMs: 30_000, everyMs: 500 })
        .catch(async () => assert.deepEqual(differences(await hands.tree(root), treeOf(model)).slice(0, 40), [], 'the share shows something else'));
    });
  });
}
