/**
 * The contract that every plugin must fulfil, as a suite for node:test: call `contractSuite(folder)` in a
 * test file of the plugin.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { parse, stringify } from 'smol-toml';
import type { Isolation } from '../config/checks/third-party.ts';
import type { Plugin } from '../contract/plugin.ts';
import type { Services } from '../contract/services.ts';
import { describeLedger } from '../plugins/describe-ledger.ts';
import { examinePlugin } from '../plugins/discovery/discover.ts';
import { entryOf } from '../plugins/discovery/found.ts';
import { dryRun } from '../plugins/instance/instance.ts';
import { packageDir } from '../plugins/discovery/stage.ts';
import {
  manifestProblem,
  pickPlugin,
  readPackage,
  thirdPartyProblem,
  versioned,
} from '../plugins/discovery/manifest.ts';
import { createClock } from '../platform/clock.ts';
import { importModule } from '../platform/load-module.ts';
import { createProcesses } from '../platform/processes/processes.ts';
import { createManualClock } from './manual-clock.ts';
import type { ManualClock } from './manual-clock.ts';
import { keyProblems, readSample, readmeProblems, sampleProblems, sampleSecrets } from './plugin-checks.ts';
import { createTestHost, offer } from './test-host.ts';
import type { TestHost } from './test-host.ts';

export interface ContractOptions {
  /** The built entry; default: the one in package.json. */
  readonly entry?: string;
  /**
   * `own`: the plugin is loaded in a process of its own, as the daemon would; `shared`: in one of those that several
   * share; default: here. Not together with `entry`.
   */
  readonly isolation?: Isolation;
  /**
   * Services that the plugin requires from other plugins; default: stubs that answer every call with
   * undefined.
   */
  readonly services?: Partial<Services>;
  /** Built entries of plugins whose keys may also be in the sample; they stay off. */
  readonly neighbours?: readonly string[];
}

const WHERE: Readonly<Record<Isolation, string>> = {
  own: ' in a process of its own',
  shared: ' in a shared process',
  none: '',
};
const IMPORT_MS = 30_000;
/** Strangers' plugins come up while others go on. */
const COMES_UP_MS = 30_000;
const log = pino({ level: 'silent' });

/** Declares the suite for the plugin in `folder`, which holds its README.md and sample.toml. */
export function contractSuite(folder: string, options: ContractOptions = {}): void {
  const name = path.basename(folder);
  const where = WHERE[options.isolation ?? 'none'];
  void describe(`contract of the plugin ${name}${where}`, () => {
    let plugin: Plugin;
    let neighbours: readonly Plugin[];
    let stateDir: string;
    after(() => rm(stateDir, { recursive: true, force: true }));
    before(async () => {
      stateDir = await mkdtemp(path.join(tmpdir(), 'mountkeeper-contract-'));
      const { isolation = 'none' } = options;
      plugin = await (isolation === 'none' ? load(folder, options) : carried(folder, stateDir, isolation));
      neighbours = await Promise.all((options.neighbours ?? []).map(importPlugin));
    });

    void it('has a README with the known sections', async () =>
      assert.deepEqual(await readmeProblems(folder, name), []));
    void it('explains every configuration key', () => assert.deepEqual(keyProblems(plugin), []));
    void it('brings a sample that is valid', async () => {
      const clock = createClock();
      const services = {
        clock,
        secrets: sampleSecrets,
        processes: createProcesses({ stateDir: folder, clock, log }),
      };
      assert.deepEqual(
        await sampleProblems(folder, {
          entries: [
            ...entryOf(offer(plugin, log, isStranger(options))),
            ...neighbours.flatMap((one) => entryOf(offer(one, log))),
          ],
          services,
          log,
        }),
        [],
      );
    });
    void it('declares the same twice', () =>
      assert.deepEqual(describeLedger(dryRun(plugin, log)), describeLedger(dryRun(plugin, log))));
    void it('leaves nothing behind: no hook, route, timer, process or handle', () =>
      liveTwice({ plugin, neighbours, folder, options, stateDir }));
  });
}

/** Known by its package.json, as the plugins of others are. */
function isStranger({ entry }: ContractOptions): boolean {
  return entry === undefined;
}

/** As the daemon has it while its code is in another process. */
async function carried(folder: string, stateDir: string, isolation: Isolation): Promise<Plugin> {
  const options = { inTree: '', thirdPartyDirs: [], stateDir, log, importMs: IMPORT_MS };
  const found = await examinePlugin(folder, isolation, options);
  assert.ok(found.plugin, 'problem' in found ? found.problem : undefined);
  return found.plugin;
}

async function load(folder: string, options: ContractOptions): Promise<Plugin> {
  const manifest =
    options.entry === undefined
      ? readPackage(await readFile(path.join(folder, 'package.json'), 'utf8'))
      : undefined;
  const entry = options.entry ?? path.join(folder, manifest?.entry ?? '');
  const value = versioned(await importPlugin(entry), manifest?.version) as Plugin;
  assert.equal(manifestProblem(value, path.basename(folder)), undefined);
  if (manifest) assert.equal(thirdPartyProblem(value, manifest), undefined);
  return value;
}

async function importPlugin(entry: string): Promise<Plugin> {
  return pickPlugin(await importModule(entry, { hasTypes: true })) as Plugin;
}

interface Life {
  readonly plugin: Plugin;
  readonly neighbours: readonly Plugin[];
  readonly folder: string;
  readonly options: ContractOptions;
  /** Where the copy lies that is loaded in a process of its own. */
  readonly stateDir: string;
}

/** Activates and disposes twice; afterwards everything is as before. */
async function liveTwice({ plugin, neighbours, folder, options, stateDir }: Life): Promise<void> {
  const clock = createManualClock();
  // A missing sample is reported by its own test; here the plugin runs with its defaults.
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
      ...(isStranger(options) && { strangers: [plugin.name] }),
      services: {
        secrets: sampleSecrets,
        paths: { stateDir, packageDir },
        ...standIns(plugin, options.services),
      },
    }),
  );
  try {
    const idleTimers = clock.pending;
    const effects = [await upAndDown(), await upAndDown()];
    assert.deepEqual(effects[1], effects[0], 'the second activation holds the same as the first');

    async function upAndDown(): Promise<readonly string[]> {
      await inTime(clock, test.configure(document(true)));
      await inTime(clock, isUp(test, plugin.name));
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

async function isUp(test: TestHost, name: string): Promise<void> {
  const real = createClock();
  const until = real.monotonic() + COMES_UP_MS;
  while (test.info(name).state === 'waiting' && real.monotonic() < until) await real.sleep(20);
}

function assertEmpty(test: TestHost, plugin: Plugin): void {
  assert.equal(test.info(plugin.name).state, 'disabled');
  assert.deepEqual([test.host.ledgers(), test.effects(), test.jobs()], [[], [], []]);
}

/** Advances the manual clock with real time until the work is done. */
async function inTime<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  // The caller's own wait says so.
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
  // Another system than Linux: children are not counted.
  const threads = await readdir('/proc/self/task').catch(() => []);
  const lists = await Promise.all(
    // The thread, or the right to see its children, is gone.
    threads.map((thread) => readFile(`/proc/self/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter((pid) => pid !== ''));
}

/** Sockets and children need a moment to close; what is left after two seconds counts as a leak. */
async function settled(before: Footprint): Promise<void> {
  const clock = createClock();
  for (let attempt = 0; ; attempt += 1) {
    const more = [...(await footprint())].filter(([kind, count]) => count > (before.get(kind) ?? 0));
    if (more.length === 0) return;
    if (attempt === 40) assert.deepEqual(more, [], 'this was not released (kind, count)');
    await clock.sleep(50);
  }
}
