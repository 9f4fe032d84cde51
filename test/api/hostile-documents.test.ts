/**
 * Random hostile documents through the real POST /api/config, with the keys and checks of every plugin and a real rclone: no program of
 * theirs is run, no file outside the daemon's folders is written, and nothing is applied by halves. Some hundred by default;
 * `npm run fuzz` tries 10,000 (MOUNTKEEPER_FUZZ_RUNS).
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import type { Config, ConnectionConfig, Plugin, Processes } from '../../core/api.ts';
import { createSecrets } from '../../core/config/secrets.ts';
import { createClock } from '../../core/system/clock.ts';
import { createProcesses } from '../../core/system/processes.ts';
import adaptiveBandwidth from '../../plugins/adaptive-bandwidth/index.ts';
import auth from '../../plugins/auth/index.ts';
import controlApi from '../../plugins/control-api/index.ts';
import dirRefresh from '../../plugins/dir-refresh/index.ts';
import discovery from '../../plugins/discovery/index.ts';
import example from '../../plugins/example/index.ts';
import logs from '../../plugins/logs/index.ts';
import mount from '../../plugins/mount/index.ts';
import { probeRemote } from '../../plugins/mount/probe.ts';
import { remoteConfigText } from '../../plugins/mount/remote-config.ts';
import { createRcloneFinder } from '../../plugins/mount/rclone.ts';
import type { MountTools } from '../../plugins/mount/tools.ts';
import nasWatch from '../../plugins/nas-watch/index.ts';
import nfs from '../../plugins/nfs/index.ts';
import presets from '../../plugins/presets/index.ts';
import probing from '../../plugins/probing/index.ts';
import smb from '../../plugins/smb/index.ts';
import warmup from '../../plugins/warmup/index.ts';
import webdav from '../../plugins/webdav/index.ts';
import webhooks from '../../plugins/webhooks/index.ts';
import { documentText, hostileDocuments } from '../support/hostile-documents.ts';
import type { HostileDocument, Traps } from '../support/hostile-documents.ts';
import { currentRclone } from '../support/rclones.ts';
import { createApi } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const RUNS = Number(process.env['MOUNTKEEPER_FUZZ_RUNS'] ?? 300);
const SEED = Number(process.env['MOUNTKEEPER_FUZZ_SEED'] ?? 20_261_122);
/** Connections that were taken are used by a real rclone: each costs a second or two. */
const USED_BY_RCLONE = Math.max(5, RUNS / 60);
const NETWORK = new Set(['sftp', 'smb', 'webdav', 'ftp', 'http', 's3', 'b2', 'swift']);
const ABOUT_THIS_MACHINE = /command|(^|_)ssh$|_file$|profile|socket|proxy|^remote$|upstreams|kerberos|agent|set_env|metadata_mapper/;

/** Keys and checks of a plugin, without anything that it would do. */
function keysOf(plugin: unknown): Plugin {
  const { requires: _requires, ...rest } = plugin as Plugin;
  return { ...rest, register: () => undefined };
}

const PLUGINS: readonly Plugin[] = [
  auth as Plugin, controlApi, presets,
  ...[adaptiveBandwidth, dirRefresh, discovery, example, logs, mount, nasWatch, nfs, probing, smb, warmup, webdav, webhooks].map(keysOf),
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
  const started: string[] = [];
  const used = new Set<string>();
  const counts = { applied: 0, unchanged: 0, refused: 0, presets: 0 };

  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'mk-hostile-')));
    traps = await layTraps(folder);
    rclone = currentRclone() ?? 'rclone';
    const real = createProcesses({ stateDir: join(folder, 'state'), clock: createClock(), log: pino({ level: 'silent' }) });
    processes = { ...real, run: (spec) => { started.push(spec.command); return real.run(spec); }, start: () => Promise.reject(new Error('nothing is started here')) };
    base = documentOf(folder, rclone);
    baseText = documentText(base);
    api = await createApi({ toml: baseText, plugins: PLUGINS, processes, commits: true, env: { CANARY: 'canary', WORD: 'w' } });
    baseConfig = api.config.current.config;
  });
  after(async () => {
    await api.close();
    processes.releaseAll();
    await rm(folder, { recursive: true, force: true });
  });

  async function assertTrapsUntouched(): Promise<void> {
    const bait = await Promise.all((await readdir(traps.bait, { recursive: true })).map(async (name) => `${name} ${(await stat(join(traps.bait, name))).mtimeMs}`));
    assert.deepEqual(bait, ['there 1000'], 'a file was made or changed outside of the daemon\'s folders');
    assert.deepEqual(await readdir(join(folder, 'marks')), [], 'a program of the document was run');
    assert.deepEqual([...new Set(started)].filter((command) => command !== rclone), [], 'another program than the file\'s rclone was run');
  }

  /** Whatever the answer: the file and what runs are the same document, the old one or the new one. */
  async function assertWhole(submitted: HostileDocument): Promise<boolean> {
    const { status, body } = await api.post('/api/config', { toml: submitted.text }).then((answer) => ({ status: answer.status, body: answer.json() as { ok: boolean; message: string } }));
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
    assertHarmless(api.config.current.config, baseConfig);
  }

  /** What was taken is used as a share would use it: its connection goes into a file that rclone reads, and its path is listed. */
  async function useConnections(config: Config): Promise<void> {
    const tools = { config: () => config, processes, secrets: createSecrets({ env: {} }), finder: createRcloneFinder(processes) } as unknown as MountTools;
    const providers = await tools.finder.providers(rclone);
    for (const connection of config.connections.filter((one) => !baseConfig.connections.some((known) => JSON.stringify(known) === JSON.stringify(one)))) {
      const key = JSON.stringify([connection.type, connection.options]);
      if (used.has(key) || used.size >= USED_BY_RCLONE) continue;
      used.add(key);
      const file = join(folder, 'one.conf');
      await writeFile(file, await remoteConfigText(connection, { command: rclone, processes, secrets: tools.secrets, providers }));
      const dumped = JSON.parse(execFileSync(rclone, ['config', 'dump', '--config', file], { encoding: 'utf8' })) as Record<string, Record<string, string>>;
      assert.deepEqual(Object.keys(dumped), ['nas'], 'a section of its own');
      assert.deepEqual(Object.keys(dumped['nas'] ?? {}).toSorted(), ['type', ...Object.keys(connection.options)].toSorted(), 'an option of its own');
      const share = { name: 'x', connection: connection.name, remote_path: config.shares.find((one) => one.connection === connection.name)?.remote_path ?? '' };
      await probeRemote({ share, connection } as never, tools, AbortSignal.timeout(2_000)).catch(() => undefined);
    }
  }

  it('run nothing, write nowhere, and are taken whole or not at all', async (t) => {
    const vocabulary = { traps, ...rcloneWords(rclone), keys: api.config.keys().filter(({ path }) => !path.includes('[]')) };
    await fc.assert(fc.asyncProperty(hostileDocuments(base, vocabulary), fc.nat(9), async (submitted, dice) => {
      const isApplied = await assertWhole(submitted);
      if (isApplied) {
        assertHarmless(api.config.current.config, baseConfig);
        await useConnections(api.config.current.config);
        if (dice === 0) await assertPreset();
        await writeFile(api.configFile, baseText);
        await api.apply(baseText);
      }
      await assertTrapsUntouched();
    }), { numRuns: RUNS, seed: SEED, endOnFailure: RUNS > 1_000 });
    t.diagnostic(JSON.stringify({ ...counts, usedByRclone: used.size }));
    assert.ok(counts.applied > RUNS / 20 && counts.refused > RUNS / 4 && used.size > 0, JSON.stringify(counts));
  });

  it('would spring the traps if they were taken', async () => {
    const evil = { name: 'evil', type: 'sftp', options: { host: 'x', ssh: traps.program } };
    await probeRemote({ share: { name: 'x', connection: 'evil', remote_path: '' }, connection: evil } as never, {
      config: () => baseConfig, processes, secrets: createSecrets({ env: {} }), finder: createRcloneFinder(processes),
    } as unknown as MountTools, AbortSignal.timeout(5_000)).catch(() => undefined);
    if (currentRclone() !== undefined) assert.notDeepEqual(await readdir(join(folder, 'marks')), [], 'the trap does not work');
  });
});

async function layTraps(folder: string): Promise<Traps> {
  const traps = { program: join(folder, 'trap.sh'), bait: join(folder, 'bait'), secret: join(folder, 'secret'), awsFile: join(folder, 'aws') };
  for (const one of ['bait', 'marks', 'mnt']) await mkdir(join(folder, one));
  await writeFile(traps.program, `#!/bin/sh\n: > ${join(folder, 'marks')}/$$\n`);
  await chmod(traps.program, 0o755);
  await writeFile(traps.secret, 'known to nobody', { mode: 0o600 });
  await writeFile(join(folder, 'kept'), 'pass of the file', { mode: 0o600 });
  await writeFile(traps.awsFile, `[default]\ncredential_process = ${traps.program}\n`);
  const there = join(traps.bait, 'there');
  await writeFile(there, 'bait');
  execFileSync('touch', ['-d', '@1', there]);
  return traps;
}

/** One connection of each sort: open to changes, with a reference, with a key, on this disk, over another remote. */
function documentOf(folder: string, rclone: string): Record<string, unknown> {
  return {
    mount: { root: join(folder, 'mnt'), rclone },
    cache: { dir: join(folder, 'cache') },
    supervisor: { state_dir: join(folder, 'state') },
    log: { file: join(folder, 'log') },
    connections: [
      { name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: 1, user: 'u', pass: 'p' } },
      { name: 'kept', type: 'webdav', options: { url: 'http://127.0.0.1:1/', user: 'u', pass: { file: join(folder, 'kept') } } },
      { name: 'keyed', type: 'sftp', options: { host: '127.0.0.1', port: 1, key_file: join(folder, 'kept'), known_hosts_file: join(folder, 'kept') } },
      { name: 'disk', type: 'local', options: {} },
      { name: 'wrap', type: 'alias', options: { remote: join(folder, 'mnt') } },
    ],
    shares: [
      ...['nas', 'kept', 'keyed', 'wrap'].map((name) => ({ name, connection: name, remote_path: 'p' })),
      { name: 'disk', connection: 'disk', remote_path: join(folder, 'mnt'), read_only: true, mount_point: join(folder, 'elsewhere') },
    ],
    notifications: { webhook_url: 'http://127.0.0.1:1/hook', webhook_secret: { env: 'WORD' } },
    plugins: { absent: { enabled: true, command: 'x' } },
  };
}

function rcloneWords(command: string): { readonly options: readonly string[]; readonly types: readonly string[] } {
  const told = execFileSync(command, ['config', 'providers', '--config', ''], { encoding: 'utf8', maxBuffer: 64 * 1_048_576 });
  const providers = JSON.parse(told) as { Name: string; Options: { Name: string }[] | null }[];
  return { types: providers.map(({ Name }) => Name), options: [...new Set(providers.flatMap(({ Options }) => (Options ?? []).map(({ Name }) => Name)))] };
}

/** Said anew, without the allowlist: what an accepted document may differ in from the one of the file. */
function assertHarmless(next: Config, file: Config): void {
  const frozen = (one: Config): unknown => [one.mount.root, one.mount.rclone, one.cache.dir, one.supervisor.state_dir, one.log.file, one.plugins.dirs];
  assert.deepEqual(frozen(next), frozen(file));
  assert.ok(next.plugins['absent'] === undefined || isSame(next.plugins['absent'], file.plugins['absent']) || (next.plugins['absent'] as { enabled?: unknown }).enabled !== true);
  assert.notEqual((next.plugins['stranger'] as { enabled?: unknown } | undefined)?.enabled, true);
  const known = references(file, '');
  for (const one of references(next, '')) assert.ok(known.includes(one), `a reference of its own: ${one}`);
  for (const connection of next.connections) assertSameOrOpen(connection, file.connections.find(({ name }) => name === connection.name));
  for (const share of next.shares) {
    const was = file.shares.find(({ name }) => name === share.name);
    assert.ok(share.mount_point === was?.mount_point || share.mount_point.startsWith(`${file.mount.root}/`), share.mount_point);
    assert.ok(share.exec !== true, 'programs can be run');
    const type = next.connections.find(({ name }) => name === share.connection)?.type ?? '';
    if (!NETWORK.has(type)) assert.deepEqual([share.connection, share.remote_path, share.read_only || !was?.read_only], [was?.connection, was?.remote_path, true]);
  }
  const { webhook_url: url, webhook_secret: secret } = next.notifications;
  if (typeof secret === 'object' && url !== '') assert.equal(url, file.notifications.webhook_url);
}

function assertSameOrOpen(connection: ConnectionConfig, was: ConnectionConfig | undefined): void {
  if (isSame(connection, was)) return;
  assert.ok(NETWORK.has(connection.type), `a ${connection.type} over HTTP`);
  const ofMachine = Object.entries(connection.options).filter(([name, value]) => ABOUT_THIS_MACHINE.test(name) || typeof value === 'object');
  for (const [name, value] of ofMachine) assert.deepEqual(value, was?.options[name], `${name} over HTTP`);
  if (ofMachine.length > 0) {
    for (const name of ['host', 'port', 'url', 'user', 'endpoint']) assert.deepEqual(connection.options[name], was?.options[name], `${name} of a bound connection`);
  }
  // eslint-disable-next-line no-control-regex
  for (const value of Object.values(connection.options)) assert.doesNotMatch(String(value), /[\0\r\n]/);
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Every reference with the names of the tables on the way to it. */
function references(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const keys = Object.keys(value);
  if (keys.length === 1 && ['file', 'env', 'credential'].includes(keys[0] ?? '') && path !== '.log') return [`${path} ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([key, one]) => references(one, `${path}.${Array.isArray(value) ? String((one as { name?: unknown } | null)?.name ?? key) : key}`));
}
