/**
 * The figures at /metrics as a real Prometheus sees them: scraped from a real daemon, asked by the
 * dashboard's own queries.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { ShareJson } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { dashboardQueries } from '../../support/metrics/grafana-queries.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const PASSWORD = 'pass-for-the-figures';
const ALERTS = fileURLToPath(new URL('../../../../config/monitoring/alerts.yml', import.meta.url));
const authorization = `Basic ${Buffer.from(`prometheus:${PASSWORD}`).toString('base64')}`;

interface Result {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus of the test's own on loopback, set up like the file that comes with the package. */
async function startPrometheus(
  scratch: Scratch,
  target: string,
): Promise<{ ask(query: string): Promise<readonly Result[]>; get(path: string): Promise<unknown> }> {
  const port = await freePort();
  const room = scratch.path('prometheus');
  await mkdir(room);
  await writeFile(`${room}/password`, PASSWORD);
  await writeFile(
    `${room}/prometheus.yml`,
    [
      'global: {scrape_interval: 1s, evaluation_interval: 1s}',
      `rule_files: [${JSON.stringify(ALERTS)}]`,
      'scrape_configs:',
      '  - job_name: mountkeeper',
      '    basic_auth: {username: prometheus, password_file: password}',
      `    static_configs: [{targets: ['${target}']}]`,
      '',
    ].join('\n'),
  );
  const log = openSync(`${room}/log`, 'a');
  const args = [
    `--config.file=${room}/prometheus.yml`,
    `--storage.tsdb.path=${room}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn('prometheus', args, { stdio: ['ignore', log, log], cwd: room });
  const ended = once(child, 'exit');
  scratch.defer(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    const { data, error } = (await answer.json()) as { data: unknown; error?: string };
    assert.equal(error, undefined, path);
    return data;
  };
  return {
    get,
    ask: async (query) =>
      ((await get(`/api/v1/query?query=${encodeURIComponent(query)}`)) as { result: readonly Result[] })
        .result,
  };
}

describe('/metrics of a real daemon', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let files: Files;

  const text = async (): Promise<string> =>
    (await daemon.request('GET', '/metrics', undefined, { authorization })).text;
  const valueIn = (body: string, series: string): number => {
    const line = body.split('\n').find((one) => one.startsWith(`${series} `));
    assert.ok(line, series);
    return Number(line.slice(series.length + 1));
  };

  before(async () => {
    scratch = await createScratch('metrics');
    const nas = await Nas.create(scratch, { files: { 'photos/a.bin': 300_000, 'files/b.bin': 10 } });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'photos', connection: 'nas', remote_path: 'photos' },
        { name: 'files', connection: 'nas', remote_path: 'files' },
      ],
      sections: {
        web: { username: 'prometheus', password: PASSWORD },
        bandwidth: { up: '50M' },
        warmup: { rules: [{ share: 'photos', path: '/' }] },
      },
    });
    daemon.spawn().catch(() => undefined);
    await until(
      'both shares are healthy',
      async () =>
        (await text()).match(/^mountkeeper_share_health\{health="healthy",share="\w+"\} 1$/gm)?.length === 2,
      { timeoutMs: 60_000 },
    );
  });
  after(() => scratch.close());

  it('asks for the password of the API', async () => {
    assert.equal((await daemon.get('/metrics')).status, 401);
    assert.equal((await daemon.request('GET', '/metrics', undefined, { authorization })).status, 200);
  });

  it('says what the status says at the same version', async () => {
    const version = (body: string): number => valueIn(body, 'mountkeeper_status_version');
    const { body, shares } = await until(
      'a status between two equal versions',
      async () => {
        const first = await text();
        const status = (
          await daemon.request<{
            shares: readonly (ShareJson & { transfers: number; errors: number; speed: number })[];
          }>('GET', '/api/status', undefined, { authorization })
        ).body;
        const last = await text();
        return version(first) === version(last) && status.shares.every(({ mounted }) => mounted)
          ? { body: first, shares: status.shares }
          : undefined;
      },
      { timeoutMs: 30_000 },
    );
    for (const share of shares) {
      const own = (name: string): number => valueIn(body, `mountkeeper_share_${name}{share="${share.name}"}`);
      assert.deepEqual(
        [
          own('cache_bytes'),
          own('dirty_files'),
          own('errored_files'),
          own('transfers'),
          own('errors_total'),
          own('transfer_bytes_per_second'),
          own('mounted'),
        ],
        [
          share.cache_bytes,
          share.dirty_count,
          share.errored_files,
          share.transfers,
          share.errors,
          share.speed,
          1,
        ],
        share.name,
      );
    }
  });

  it('is scraped by Prometheus, which answers every query of the dashboard from it', async () => {
    const prometheus = await startPrometheus(scratch, `127.0.0.1:${daemon.port}`);
    await until(
      'Prometheus has scraped',
      async () => (await prometheus.ask('up{job="mountkeeper"} == 1')).length === 1,
      { timeoutMs: 30_000 },
    );
    await files.write(`${daemon.mountPoint('photos')}/new.bin`, 200_000);
    // A protocol that is off has no series; which ones there are is looked at in the plugin's own tests.
    const isOff = (query: string): boolean => query.startsWith('mountkeeper_server_up');
    const unanswered = new Set((await dashboardQueries()).filter((query) => !isOff(query)));
    assert.ok(unanswered.size > 20);
    const all = unanswered.size;
    await until(
      'every query has an answer',
      async () => {
        for (const query of unanswered)
          if ((await prometheus.ask(query)).length > 0) unanswered.delete(query);
        return unanswered.size === 0;
      },
      { timeoutMs: 60_000, everyMs: 500 },
    ).catch(() => assert.deepEqual([...unanswered], [], `of ${all} queries`));
    const rules = (await prometheus.get('/api/v1/rules')) as {
      groups: readonly { rules: readonly { name: string; health: string; state: string }[] }[];
    };
    const named = rules.groups.flatMap((group) => group.rules);
    assert.equal(named.length, (await readFile(ALERTS, 'utf8')).match(/- alert:/g)?.length);
    assert.deepEqual(
      named.filter(({ health, state }) => health !== 'ok' || state === 'firing'),
      [],
      'each rule can be reckoned, none fires',
    );
  });

  it('is printed by the command line, which needs no password here', async () => {
    const { code, stdout } = await daemon.cli('metrics');
    assert.equal(code, 0);
    assert.equal(valueIn(stdout, 'mountkeeper_share_mounted{share="photos"}'), 1);
  });
});
