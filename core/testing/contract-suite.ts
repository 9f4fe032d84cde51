/**
 * The contract every plugin keeps, as a suite for node:test: `contractSuite(folder)` in a test file of the
 * plugin's own.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { parse, stringify } from 'smol-toml';
import type { Plugin } from '../contract/plugin.ts';
import type { Secrets } from '../contract/config.ts';
import type { Services } from '../contract/services.ts';
import { describeLedger } from '../plugins/describe-ledger.ts';
import { entryOf } from '../plugins/discovery/found.ts';
import { dryRun } from '../plugins/instance/instance.ts';
import {
  manifestProblem,
  pickPlugin,
  readPackage,
  thirdPartyProblem,
} from '../plugins/discovery/manifest.ts';
import { createClock } from '../platform/clock.ts';
import { createProcesses } from '../platform/processes/processes.ts';
import { createManualClock } from './manual-clock.ts';
import type { ManualClock } from './manual-clock.ts';
import { keyProblems, readSample, readmeProblems, sampleProblems } from './plugin-checks.ts';
import { createTestHost, offer } from './test-host.ts';
import type { TestHost } from './test-host.ts';

export interface ContractOptions {
  /** The built entry; default: what package.json names. */
  readonly entry?: string;
  /**
   * Services that the plugin requires of other plugins; default: ones that answer everything with undefined.
   */
  readonly services?: Partial<Services>;
  /** Built entries of plugins whose keys may stand in the sample too; they stay off. */
  readonly neighbours?: readonly string[];
}

const log = pino({ level: 'silent' });
/** A sample may refer to secrets that are not on this machine. */
const anySecret: Secrets = {
  resolve: (secret) => (typeof secret === 'string' ? secret : 'secret of the sample'),
};

/** Declares the suite for the plugin in `folder`, which holds its README.md and sample.toml. */
export function contractSuite(folder: string, options: ContractOptions = {}): void {
  const name = path.basename(folder);
  void describe(`contract of the plugin ${name}`, () => {
    let plugin: Plugin;
    let neighbours: readonly Plugin[];
    before(async () => {
      plugin = await load(folder, options);
      neighbours = await Promise.all((options.neighbours ?? []).map(importPlugin));
    });

    void it('has a README with the known sections', async () =>
      assert.deepEqual(await readmeProblems(folder, name), []));
    void it('explains every configuration key', () => assert.deepEqual(keyProblems(plugin), []));
    void it('brings a sample that is valid', async () => {
      const clock = createClock();
      const services = {
        clock,
        secrets: anySecret,
        processes: createProcesses({ stateDir: folder, clock, log }),
      };
      assert.deepEqual(
        await sampleProblems(folder, {
          entries: [plugin, ...neighbours].flatMap((one) => entryOf(offer(one, log))),
          services,
          log,
        }),
        [],
      );
    });
    void it('declares the same twice', () =>
      assert.deepEqual(describeLedger(dryRun(plugin, log)), describeLedger(dryRun(plugin, log))));
    void it('leaves nothing behind: no hook, route, timer, process or handle', () =>
      liveTwice({ plugin, neighbours, folder, options }));
  });
}

async function load(folder: string, options: ContractOptions): Promise<Plugin> {
  const manifest =
    options.entry === undefined
      ? readPackage(await readFile(path.join(folder, 'package.json'), 'utf8'))
      : undefined;
  const entry = options.entry ?? path.join(folder, manifest?.entry ?? '');
  const value = await importPlugin(entry);
  assert.equal(manifestProblem(value, path.basename(folder)), undefined);
  if (manifest) assert.equal(thirdPartyProblem(value, manifest), undefined);
  return value;
}

async function importPlugin(entry: string): Promise<Plugin> {
  return pickPlugin((await import(pathToFileURL(entry).href)) as Record<string, unknown>) as Plugin;
}

interface Life {
  readonly plugin: Plugin;
  readonly neighbours: readonly Plugin[];
  readonly folder: string;
  readonly options: ContractOptions;
}

/** Activate, dispose, activate, dispose; then everything is as it was. */
async function liveTwice({ plugin, neighbours, folder, options }: Life): Promise<void> {
  const clock = createManualClock();
  // One that is missing is a finding of its own; the plugin lives with its defaults.
  const sample = parse(await readSample(folder).catch(() => 'connections = []'));
  const sections = (sample['plugins'] ?? {}) as Record<string, object>;
  const silent = Object.fromEntries(
    neighbours.map((one) => [one.name, { ...sections[one.name], enabled: false }]),
  );
  const document = (enabled: boolean) =>
    stringify({
      ...sample,
      plugins: { ...sections, ...silent, [plugin.name]: { ...sections[plugin.name], enabled } },
    });
  const before = await footprint();
  const test = await inTime(
    clock,
    createTestHost({
      plugins: [plugin, ...neighbours],
      config: document(false),
      clock,
      services: { secrets: anySecret, ...standIns(plugin, options.services) },
    }),
  );
  try {
    const idleTimers = clock.pending;
    const effects = [await upAndDown(), await upAndDown()];
    assert.deepEqual(effects[1], effects[0], 'the second activation holds the same as the first');

    async function upAndDown(): Promise<readonly string[]> {
      await inTime(clock, test.configure(document(true)));
      const info = test.info(plugin.name);
      assert.equal(info.state, 'active', info.reason);
      await inTime(clock, test.configure(document(false)));
      assertEmpty(test, plugin);
      assert.ok(clock.pending <= idleTimers, `${String(clock.pending - idleTimers)} timers are left`);
      return info.effects;
    }
  } finally {
    await inTime(clock, test.close());
  }
  await settled(before);
}

function assertEmpty(test: TestHost, plugin: Plugin): void {
  assert.equal(test.info(plugin.name).state, 'disabled');
  assert.deepEqual([test.host.ledgers(), test.effects(), test.jobs()], [[], [], []]);
}

/** Lets the manual clock go with the real one until the work is done. */
async function inTime<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  void work
    .catch(() => undefined)
    .then(() => {
      isDone = true;
    });
  const real = createClock();
  for (let lastMs = real.monotonic(); !isDone;) {
    const nowMs = real.monotonic();
    await clock.advance(nowMs - lastMs);
    lastMs = nowMs;
  }
  return work;
}

function standIns(plugin: Plugin, given: Partial<Services> = {}): Partial<Services> {
  const core = new Set([
    'clock',
    'processes',
    'mountTable',
    'mountReader',
    'config',
    'secrets',
    'status',
    'shares',
    'plugins',
    'paths',
    'logFile',
    'metrics',
    'store',
  ]);
  const missing = (plugin.requires ?? []).filter((name) => !core.has(name));
  const silent = new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : async () => undefined) });
  return { ...Object.fromEntries(missing.map((name) => [name, silent])), ...given };
}

type Footprint = ReadonlyMap<string, number>;

/** What keeps the process alive, by kind, and its children. */
async function footprint(): Promise<Footprint> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind !== 'Immediate' && kind !== 'FSReqPromise') counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts.set('child process', (await children()).length);
}

async function children(): Promise<readonly string[]> {
  const threads = await readdir('/proc/self/task').catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/self/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter((pid) => pid !== ''));
}

/** Sockets and children need a moment to go; after two seconds what is left, stays. */
async function settled(before: Footprint): Promise<void> {
  const clock = createClock();
  for (let attempt = 0; ; attempt += 1) {
    const more = [...(await footprint())].filter(([kind, count]) => count > (before.get(kind) ?? 0));
    if (more.length === 0) return;
    if (attempt === 40) assert.deepEqual(more, [], 'this is left behind (kind, count)');
    await clock.sleep(50);
  }
}
