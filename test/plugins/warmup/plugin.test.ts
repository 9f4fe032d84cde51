import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createManualClock, createTestHost } from 'mountkeeper/testing';
import type { PluginContext } from 'mountkeeper';
import type { TestHost } from 'mountkeeper/testing';
import type { WarmupConfig } from '../../../plugins/warmup/config.ts';
import warmup from '../../../plugins/warmup/index.ts';
import { createRateMeter, progressLine } from '../../../plugins/warmup/progress.ts';
import type { TaskView, WarmupAnswer } from '../../../plugins/warmup/routes.ts';
import { runCommand } from '../../api/cli.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../plugins/dashboard/view.ts';
import { warmupTabs } from '../../../plugins/warmup/tab.ts';
import { openShare } from './fixture.ts';
import { stepUntil } from '../../support/platform/wait.ts';
import { sharesOf } from '../../support/shares/fake-shares.ts';

const document = (section: object = {}) => ({
  connections: [{ name: 'nas', type: 'sftp' }],
  warmup: { auto: false, ...section },
  shares: [
    { name: 'photos', connection: 'nas', mount_point: '/mnt/photos' },
    { name: '文件', connection: 'nas', mount_point: '/mnt/x' },
  ],
});
const rules = [{ share: 'photos', path: '/2024//mai/', newer_than: '30d' }, { share: '文件' }];

/** As the plugin's own, for what it hands its tab. As in the daemon, who sends hears of no refusal. */
function ctxOf(host: TestHost): PluginContext<WarmupConfig> {
  const send = async (command: 'warmup', target: never): Promise<void> => {
    for (const handler of host.host.handlers(command))
      await Promise.resolve(handler(target)).catch(() => undefined);
  };
  return { use: () => host.config, send } as never;
}

/** No share is mounted: whatever is called for stays due. */
async function start(t: TestContext, config: object) {
  const shares = ['photos', '文件'].map(openShare);
  for (const share of shares) share.mount = undefined;
  const host = await createTestHost({
    plugins: [warmup],
    config: { ...config },
    services: { shares: sharesOf(() => shares.map((share) => share.live)) },
  });
  t.after(() => host.close());
  return { host };
}

describe('warmup configuration', () => {
  it('says what is wrong with a schedule, a zone, a path, an age or a share', async (t) => {
    const { host } = await start(t, document());
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ warmup_schedule: '61 * * * *' }, /warmup_schedule.*61 is not between 0 and 59/],
      [{ warmup_schedule: '0 3 * *' }, /five fields.* has 4/],
      [{ warmup_schedule: '@daily' }, /write five fields instead/],
      [{ warmup_schedule: '0 0 31 2 *' }, /never comes/],
      [{ timezone: 'Mars/Base' }, /timezone.*"Mars\/Base" is not known/],
      [{ concurrency: 0 }, /concurrency/],
      [{ rules: [{ share: 'photos', path: 'a/../../etc' }] }, /must be a folder below the share/],
      [{ rules: [{ share: 'photos', newer_than: 'soon' }] }, /not a duration/],
      [{ rules: [{ share: 'photos', newer_than: '0' }] }, /newer_than.*1s/],
      [{ rules: [{ share: 'music' }] }, /there is no share "music".*photos, 文件/],
      [{ rules: [{ path: 'x' }] }, /share/],
    ];
    for (const [section, words] of wrong)
      await assert.rejects(host.configure(document(section)), words, JSON.stringify(section));
    await host.configure(
      document({ warmup_schedule: ' 0  3 * * MON-FRI ', timezone: 'Europe/Berlin', rules }),
    );
  });
});

describe('warmup', () => {
  it('has one entry in the status for each rule, and a state for each share', async (t) => {
    const { host } = await start(t, document({ rules }));
    const entry = { state: 'pending', totalFiles: 0, skipped: 0, cached: 0, errors: 0 };
    assert.deepEqual(host.status().warmup, [
      { share: 'photos', path: '2024/mai', newerThan: '30d', ...entry },
      { share: '文件', path: '', newerThan: null, ...entry },
    ]);
    assert.deepEqual(
      [host.shareStatus('photos').warmupState, host.shareStatus('文件').warmupState],
      ['pending', 'pending'],
    );
    await host.configure(document({ rules: rules.slice(1) }));
    assert.deepEqual([host.status().warmup.length, host.shareStatus('photos').warmupState], [1, 'none']);
  });

  it('calls for all rules when its time comes', async (t) => {
    const { host } = await start(t, document({ rules, warmup_schedule: '30 3 * * *' }));
    const active = async (): Promise<readonly boolean[]> => {
      const answers = await Promise.all(
        ['photos', '%E6%96%87%E4%BB%B6'].map((share) =>
          host.inject({ method: 'GET', url: `/api/warmup/${share}` }),
        ),
      );
      return answers.flatMap((answer) => (answer.json() as WarmupAnswer).tasks.map((task) => task.active));
    };
    assert.deepEqual([host.jobs(), await active()], [['warmup/scheduled warmup'], [false, false]]);
    await host.runJob('warmup/scheduled warmup');
    assert.deepEqual(await active(), [true, true]);
    await host.configure(document({ rules }));
    assert.deepEqual(host.jobs(), []);
  });

  it('takes wishes over HTTP: the rules, a folder, a count, an end', async (t) => {
    const { host } = await start(t, document({ rules: rules.slice(0, 1) }));
    const post = async (
      share: string,
      payload?: object | string,
    ): Promise<{ code: number; body: WarmupAnswer }> => {
      const answer = await host.inject({
        method: 'POST',
        url: `/api/warmup/${share}`,
        ...(payload === undefined ? {} : { payload, headers: { 'content-type': 'application/json' } }),
      });
      return { code: answer.statusCode, body: answer.json() as WarmupAnswer };
    };
    const asked = [
      ...(await post('photos')).body.tasks,
      ...(await post('photos', { path: '/x/', dry_run: true })).body.tasks,
    ];
    assert.deepEqual(
      asked.map((one) => [one.path, one.newer_than, one.dry_run, one.rule, one.active]),
      [
        ['2024/mai', '30d', false, true, true],
        ['x', null, true, false, true],
      ],
    );
    assert.match((await post('%E6%96%87%E4%BB%B6')).body.message, /has no warmup rule; name a path/);
    assert.deepEqual((await post('nobody')).body, {
      ok: false,
      message: "Share 'nobody' not found",
      tasks: [],
    });
    for (const payload of [
      { path: '../x' },
      { path: 5 },
      { dry_run: 'yes' },
      { newer_than: '3d' },
      { path: '', newer_than: 'x' },
      { path: '', newer_than: '0' },
      { nonsense: 1 },
      '[1]',
      'x',
    ]) {
      const { code, body } = await post('photos', payload);
      assert.deepEqual([code, body.ok], [400, false], JSON.stringify(payload));
    }
    assert.match(
      (await host.inject({ method: 'POST', url: '/api/warmup/photos/cancel' })).payload,
      /Warmup of share 'photos' cancelled/,
    );
    assert.match(
      (await host.inject({ method: 'POST', url: '/api/warmup/photos/cancel' })).payload,
      /No warmup of share 'photos' is under way/,
    );
    assert.equal((await host.inject({ method: 'GET', url: '/api/warmup/nobody' })).statusCode, 404);
  });

  it('takes no wish that makes no sense from anybody who sends the command', async (t) => {
    const { host } = await start(t, document());
    const [send] = host.host.handlers('warmup');
    assert.ok(send);
    const wish = { share: 'photos', path: '/a//b/', newerThan: null, isDryRun: false };
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ path: 'a/../../etc' }, /"path" must be a folder below the share/],
      [{ path: 'a\0b' }, /"path" must be a folder below the share/],
      [{ newerThan: 'soon' }, /"newerThan".*not a duration/],
      [{ newerThan: '0' }, /"newerThan".*1s/],
      [{ newerThan: undefined }, /"newerThan" is required/],
      [{ isDryRun: 'true' }, /"isDryRun" must be a boolean/],
      [{ share: 'music' }, /^Share 'music' not found$/],
      [{ share: ['photos'] }, /"share" must be a string/],
    ];
    for (const [part, sentence] of wrong)
      await assert.rejects(
        async () => send({ ...wish, ...part } as never),
        (error: Error) => sentence.test(error.message),
        JSON.stringify(part),
      );
    const tabs = warmupTabs({ ctx: ctxOf(host), scheduler: () => assert.fail('the command is sent') });
    const run = tabs[0]?.actions?.['run'];
    const form = { of: 'photos', path: 'a//b', newerThan: '3d', isDryRun: 'false' };
    await assert.rejects(async () => run?.({ form: { ...form, of: 'music' } } as never), /'music' not found/);
    for (const part of [{ path: '../x' }, { newerThan: 'soon' }, { newerThan: '0' }])
      assert.equal((await run?.({ form: { ...form, ...part } } as never))?.ok, false, JSON.stringify(part));
    const saidOf = async (isDryRun: string) => {
      const { ok, message } = (await run?.({ form: { ...form, isDryRun } } as never)) ?? {};
      return [ok, (message as Readonly<Record<string, string>>)['en']];
    };
    assert.deepEqual(await saidOf('false'), [true, 'The warmup begins; how far it is shows here.']);
    const { tasks } = (await host.inject('/api/warmup/photos')).json() as WarmupAnswer;
    assert.deepEqual(
      tasks.map(({ path, newer_than, active }) => [path, newer_than, active]),
      [['a/b', '3d', true]],
    );
    assert.deepEqual(await saidOf('true'), [true, 'Counting begins; the result shows here.']);
  });
});

describe('the page of the warmup', () => {
  before(loadLibraries);

  it('says when the rules run next, in their own time zone', async () => {
    const counts = {
      total: 0,
      skipped: 0,
      cached: 0,
      errors: 0,
      skippedBytes: 0,
      cachedBytes: 0,
      totalBytes: 0,
    };
    const one = { target: { share: 'photos', path: '', isDryRun: false }, state: 'pending', counts };
    const page = (schedule: string): Promise<string> => {
      const parts = {
        config: { warmup_schedule: schedule, timezone: 'Asia/Shanghai' },
        use: (name: string) =>
          name === 'clock' ? { now: () => 0 } : { current: { config: { shares: [{ name: 'photos' }] } } },
      };
      const [tab] = warmupTabs({ ctx: parts as never, scheduler: () => ({ of: () => [one] }) as never });
      return Promise.resolve(tab!.render(createView({ language: 'en', host: 'h', tab: tab! }))).then(toHtml);
    };
    assert.match(await page('0 3 * * *'), /The next run is at <time datetime="1970-01-01T19:00:00/);
    assert.doesNotMatch(await page(''), /next run/);
  });
});

const task: TaskView = {
  share: 'photos',
  path: 'x',
  newer_than: null,
  dry_run: false,
  rule: false,
  state: 'caching',
  active: true,
  cache_full: false,
  total_files: 10,
  skipped: 2,
  cached: 3,
  errors: 0,
  total_bytes: 10 * 2 ** 20,
  skipped_bytes: 2 * 2 ** 20,
  cached_bytes: 3 * 2 ** 20,
};

describe('mountkeeper warmup', () => {
  const answering = (...tasks: readonly TaskView[]) => {
    const asked: unknown[] = [];
    let calls = 0;
    const request = async (...args: unknown[]) => {
      asked.push(args);
      const given = tasks[Math.min(tasks.length - 1, Math.max(0, calls - 1))];
      calls += 1;
      return { status: 200, body: JSON.stringify({ ok: true, message: 'Warming up', tasks: [given] }) };
    };
    return { asked, request };
  };
  const moving = () => {
    const clock = createManualClock();
    const run = async <T>(work: Promise<T>): Promise<T> => {
      let isDone = false;
      void work
        .catch(() => undefined)
        .then(() => {
          isDone = true;
        });
      await stepUntil(
        'the command has ended',
        () => isDone,
        () => clock.advance(500),
      );
      return work;
    };
    return { clock, run };
  };

  it('shows how far it is, and in the end what came of it', async () => {
    const { asked, request } = answering({ ...task, cached: 0, cached_bytes: 0 }, task, {
      ...task,
      state: 'complete',
      active: false,
      cached: 8,
      cached_bytes: 8 * 2 ** 20,
    });
    const { clock, run } = moving();
    const result = await run(
      runCommand(warmup, ['warmup', '文件', 'x', '--newer-than', '3d'], { request, clock }),
    );
    assert.deepEqual(
      [result.code, asked[0]],
      [
        0,
        [
          'POST',
          `/api/warmup/${encodeURIComponent('文件')}`,
          { path: 'x', newer_than: '3d', dry_run: false },
        ],
      ],
    );
    assert.match(
      result.progress.at(-1) ?? '',
      /^caching {2}\[#{12}\.{12}\] {2}5\/10 files {2}5\.0 MiB of 10\.0 MiB {2}6\.0 MiB\/s/,
    );
    assert.deepEqual(result.printed, [
      'x: 10 files (10.0 MiB), 2 already cached (2.0 MiB), 8 fetched (8.0 MiB)',
    ]);
  });

  it('counts only, on request, and says what failed by its exit code', async () => {
    const { clock, run } = moving();
    const counted = await run(
      runCommand(warmup, ['warmup', 'photos', 'x', '--dry-run'], {
        request: answering({
          ...task,
          dry_run: true,
          state: 'complete',
          active: false,
          cached: 0,
          cached_bytes: 0,
        }).request,
        clock,
      }),
    );
    assert.deepEqual(
      [counted.code, counted.printed],
      [0, ['x: 10 files (10.0 MiB), 2 already cached (2.0 MiB), 8 to fetch (8.0 MiB)']],
    );
    const full = await run(
      runCommand(warmup, ['warmup', 'photos'], {
        request: answering({ ...task, state: 'failed', active: false, cache_full: true }).request,
        clock,
      }),
    );
    assert.deepEqual(
      [full.code, /the rest does not fit into the cache/.test(full.printed.join())],
      [1, true],
    );
    const json = await run(
      runCommand(warmup, ['warmup', 'photos'], {
        request: answering({ ...task, state: 'complete', active: false, errors: 1 }).request,
        clock,
        json: true,
      }),
    );
    assert.deepEqual(
      [json.code, (JSON.parse(json.printed.at(-1) ?? '') as WarmupAnswer).tasks[0]?.errors],
      [1, 1],
    );
    assert.equal(
      (await runCommand(warmup, ['warmup', '--newer-than', '3d'], { request: answering(task).request })).code,
      64,
    );
    assert.equal(
      (await runCommand(warmup, ['warmup', 'photos', '--speed', '3'], { request: answering(task).request }))
        .code,
      64,
    );
  });

  it('runs all rules, share by share, when none is named', async () => {
    const asked: string[] = [];
    const asking = (named: readonly object[]) => async (method: string, path: string) => {
      asked.push(`${method} ${path}`);
      const share = decodeURIComponent(path.split('/')[3] ?? '');
      const answer = {
        ok: true,
        message: `Warming up share '${share}'`,
        tasks: [{ ...task, share, state: 'complete', active: false }],
      };
      return {
        status: 200,
        body: JSON.stringify(path === '/api/config' ? { warmup: { rules: named } } : answer),
      };
    };
    const all = await runCommand(warmup, ['warmup'], {
      request: asking([{ share: 'photos' }, { share: '文件', path: 'x' }, { share: 'photos', path: 'y' }]),
    });
    assert.deepEqual(asked.splice(0), [
      'GET /api/config',
      ...['POST', 'GET'].flatMap((method) =>
        ['photos', '%E6%96%87%E4%BB%B6'].map((share) => `${method} /api/warmup/${share}`),
      ),
    ]);
    assert.deepEqual([all.code, all.printed.map((line) => line.split(':')[0])], [0, ['photos', '文件']]);
    const none = await runCommand(warmup, ['warmup', '--dry-run'], { request: asking([]) });
    assert.deepEqual(
      [none.code, none.errors, asked],
      [1, ['No warmup rule is configured; name a share and a path'], ['GET /api/config']],
    );
    const ended = await runCommand(warmup, ['warmup', '--cancel'], {
      request: asking([{ share: 'photos' }]),
    });
    assert.deepEqual([ended.code, asked.at(-1)], [0, 'POST /api/warmup/photos/cancel']);
  });

  it('ends a warmup, and lets one go on that it no longer shows', async () => {
    const { asked, request } = answering(task);
    assert.equal((await runCommand(warmup, ['warmup', 'photos', '--cancel'], { request })).code, 0);
    assert.equal((asked[0] as string[])[1], '/api/warmup/photos/cancel');
    const end = new AbortController();
    end.abort();
    const left = await runCommand(warmup, ['warmup', 'photos'], { request, signal: end.signal });
    assert.deepEqual([left.code, /goes on in the daemon/.test(left.errors.join())], [1, true]);
  });

  it('shows the rate of the last seconds', () => {
    const meter = createRateMeter();
    const rates = Array.from({ length: 40 }, (_, second) =>
      meter.rate(second < 20 ? second * 1_000 : 19_000, second * 1_000),
    );
    assert.deepEqual([rates[0], rates[10], rates[39]], [0, 1_000, 0]);
    assert.equal(meter.rate(5, 41_000), 0);
    assert.match(
      progressLine(
        'caching',
        { total: 1, done: 0, errors: 2, totalBytes: 100, doneBytes: 0, fetchedBytes: 0 },
        0,
      ),
      /2 failed.*time left unknown/,
    );
    assert.match(
      progressLine(
        'listing',
        { total: 7, done: 0, errors: 0, totalBytes: 2_048, doneBytes: 0, fetchedBytes: 0 },
        0,
      ),
      /^listing {2}7 files, 2\.0 KiB$/,
    );
  });
});
