/**
 * Random hostile documents through the real POST /api/config, with the keys and checks of every plugin and
 * a real rclone: no program of theirs is run, no file outside the daemon's folders is written, and nothing
 * is applied by halves. Some hundred by default; `npm run fuzz` tries 10,000 (MOUNTKEEPER_FUZZ_RUNS).
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import type { Config, ConnectionConfig } from '../../core/contract/config.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import type { Processes } from '../../core/contract/platform.ts';
import { createSecrets } from '../../core/config/secrets/secrets.ts';
import { createClock } from '../../core/platform/clock.ts';
import { createProcesses } from '../../core/platform/processes/processes.ts';
import adaptiveBandwidth from '../../plugins/adaptive-bandwidth/index.ts';
import auth from '../../plugins/auth/index.ts';
import controlApi from '../../plugins/control-api/index.ts';
import dirRefresh from '../../plugins/dir-refresh/index.ts';
import discovery from '../../plugins/discovery/index.ts';
import example from '../../plugins/example/index.ts';
import logs from '../../plugins/logs/index.ts';
import mount from '../../plugins/mount/index.ts';
import { probeRemote } from '../../plugins/mount/lifecycle/probe.ts';
import { remoteConfigText } from '../../plugins/mount/options/remote-config.ts';
import { createRcloneFinder } from '../../plugins/mount/rclone/installed.ts';
import type { RcloneFinder } from '../../plugins/mount/rclone/installed.ts';
import type { MountTools } from '../../plugins/mount/lifecycle/tools.ts';
import nasWatch from '../../plugins/nas-watch/index.ts';
import nfs from '../../plugins/nfs/index.ts';
import presets from '../../plugins/presets/index.ts';
import probing from '../../plugins/probing/index.ts';
import smb from '../../plugins/smb/index.ts';
import warmup from '../../plugins/warmup/index.ts';
import webdav from '../../plugins/webdav/index.ts';
import webhooks from '../../plugins/webhooks/index.ts';
import { assertAllowedDifferences } from '../support/config/allowed-differences.ts';
import { documentText, hostileDocuments } from '../support/config/untrusted-documents.ts';
import type { HostileDocument } from '../support/config/untrusted-documents.ts';
import { documentOf, layTraps, rcloneWords } from '../support/config/untrusted-fixture.ts';
import type { Traps } from '../support/config/untrusted-values.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createApi } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const RUNS = Number(process.env['MOUNTKEEPER_FUZZ_RUNS'] ?? 200);
const SEED = Number(process.env['MOUNTKEEPER_FUZZ_SEED'] ?? 20_261_122);
/** Connections that were taken are used by a real rclone: each costs a second or two. */
const USED_BY_RCLONE = Math.max(3, RUNS / 60);

/** Keys and checks of a plugin, without anything that it would do. */
function keysOf(plugin: unknown): Plugin {
  const { requires: _requires, ...rest } = plugin as Plugin;
  return { ...rest, register: () => undefined };
}

const PLUGINS: readonly Plugin[] = [
  auth as Plugin,
  controlApi,
  presets,
  ...[
    adaptiveBandwidth,
    dirRefresh,
    discovery,
    example,
    logs,
    mount,
    nasWatch,
    nfs,
    probing,
    smb,
    warmup,
    webdav,
    webhooks,
  ].map(keysOf),
];

describe(`${RUNS} hostile documents over HTTP`, () => {
  let folder: string;
  let traps: Traps;
  let api: ApiFixture;
  let processes: Processes & { releaseAll(): void };
  let base: Record<string, unknown>;
  let baseText: string;
  let baseConfig: Config;
  let rclone: string;
  let finder: RcloneFinder;
  const started: string[] = [];
  const used = new Set<string>();
  const counts = { applied: 0, unchanged: 0, refused: 0, presets: 0 };

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'mk-hostile-')));
    traps = await layTraps(folder);
    rclone = currentRclone() ?? 'rclone';
    const real = createProcesses({
      stateDir: join(folder, 'state'),
      clock: createClock(),
      log: pino({ level: 'silent' }),
    });
    processes = {
      ...real,
      run: (spec) => {
        started.push(spec.command);
        return real.run(spec);
      },
      start: () => Promise.reject(new Error('nothing is started here')),
    };
    base = documentOf(folder, rclone);
    baseText = documentText(base);
    api = await createApi({
      toml: baseText,
      plugins: PLUGINS,
      processes,
      commits: true,
      env: { CANARY: 'canary', WORD: 'w' },
    });
    baseConfig = api.config.current.config;
    finder = createRcloneFinder(processes);
    for (const { type, options } of baseConfig.connections) used.add(JSON.stringify([type, options]));
  });
  after(async () => {
    await api.close();
    processes.releaseAll();
    await rm(folder, { recursive: true, force: true });
  });

  async function assertTrapsUntouched(): Promise<void> {
    const bait = await Promise.all(
      (await readdir(traps.bait, { recursive: true })).map(
        async (name) => `${name} ${(await stat(join(traps.bait, name))).mtimeMs}`,
      ),
    );
    assert.deepEqual(bait, ['there 1000'], "a file was made or changed outside of the daemon's folders");
    assert.deepEqual(await readdir(join(folder, 'marks')), [], 'a program of the document was run');
    assert.deepEqual(
      // The way to a mount point is looked at by `stat`, which gives no more than owners and modes.
      [...new Set(started)].filter((command) => command !== rclone && command !== 'stat'),
      [],
      "another program than the file's rclone was run",
    );
  }

  /** Whatever the answer: the file and what runs are the same document, the old one or the new one. */
  async function assertWhole(submitted: HostileDocument): Promise<boolean> {
    const { status, body } = await api
      .post('/api/config', { toml: submitted.text })
      .then((answer) => ({ status: answer.status, body: answer.json() as { ok: boolean; message: string } }));
    const isApplied = body.message === 'Config applied successfully';
    counts[isApplied ? 'applied' : status === 200 ? 'unchanged' : 'refused'] += 1;
    assert.ok(status === 400 || (status === 200 && body.ok), `${status} ${body.message}`);
    const expected = isApplied ? submitted.text : baseText;
    assert.equal(await api.fileText(), expected);
    assert.equal(api.config.current.text, expected);
    return isApplied;
  }

  async function assertPreset(): Promise<void> {
    counts.presets += 1;
    assert.match((await api.post('/api/preset/office')).body, /class="ok"/);
    assert.equal(await api.fileText(), api.config.current.text);
    assertAllowedDifferences(api.config.current.config, baseConfig);
  }

  function toolsFor(config: Config): MountTools {
    return {
      config: () => config,
      processes,
      secrets: createSecrets({ env: {} }),
      finder,
      paths: { stateDir: join(folder, 'state') },
    } as unknown as MountTools;
  }

  /**
   * What was taken is used as a share would use it: its connection goes into a file that rclone reads, and
   * its path is listed.
   */
  async function useConnections(config: Config): Promise<void> {
    for (const connection of config.connections) {
      const key = JSON.stringify([connection.type, connection.options]);
      if (used.has(key) || used.size >= USED_BY_RCLONE + baseConfig.connections.length) continue;
      used.add(key);
      await assertOneSection(connection, toolsFor(config));
      const remote_path = config.shares.find((one) => one.connection === connection.name)?.remote_path ?? '';
      const share = { name: 'x', connection: connection.name, remote_path };
      const signal = AbortSignal.timeout(2_000);
      await probeRemote({ share, connection } as never, toolsFor(config), signal).catch(() => undefined);
    }
  }

  async function assertOneSection(connection: ConnectionConfig, { secrets }: MountTools): Promise<void> {
    const file = join(folder, 'one.conf');
    const providers = await finder.providers(rclone);
    await writeFile(file, remoteConfigText(connection, { secrets, providers }));
    const text = execFileSync(rclone, ['config', 'dump', '--config', file], { encoding: 'utf8' });
    const dumped = JSON.parse(text) as Record<string, Record<string, string>>;
    assert.deepEqual(Object.keys(dumped), ['nas'], 'a section of its own');
    const options = ['type', ...Object.keys(connection.options)];
    assert.deepEqual(Object.keys(dumped['nas'] ?? {}).toSorted(), options.toSorted(), 'an option of its own');
  }

  it('run nothing, write nowhere, and are taken whole or not at all', async (t) => {
    const vocabulary = {
      traps,
      ...rcloneWords(rclone),
      keys: api.config.keys().filter(({ path }) => !path.includes('[]')),
    };
    await fc.assert(
      fc.asyncProperty(hostileDocuments(base, vocabulary), fc.nat(9), async (submitted, dice) => {
        const isApplied = await assertWhole(submitted);
        if (isApplied) {
          assertAllowedDifferences(api.config.current.config, baseConfig);
          await useConnections(api.config.current.config);
          if (dice === 0) await assertPreset();
          await writeFile(api.configFile, baseText);
          await api.apply(baseText);
        }
        await assertTrapsUntouched();
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: RUNS > 1_000 },
    );
    t.diagnostic(JSON.stringify({ ...counts, usedByRclone: used.size - baseConfig.connections.length }));
    assert.ok(
      counts.applied > RUNS / 20 && counts.refused > RUNS / 4 && used.size > baseConfig.connections.length,
      JSON.stringify(counts),
    );
  });

  it('would spring the traps if they were taken', async () => {
    const connection = { name: 'evil', type: 'sftp', options: { host: 'x', ssh: traps.program } };
    const share = { name: 'x', connection: 'evil', remote_path: '' };
    const signal = AbortSignal.timeout(20_000);
    await probeRemote({ share, connection } as never, toolsFor(baseConfig), signal).catch(() => undefined);
    const marks = await readdir(join(folder, 'marks'));
    if (currentRclone() !== undefined) assert.notDeepEqual(marks, [], 'the trap does not work');
  });
});
