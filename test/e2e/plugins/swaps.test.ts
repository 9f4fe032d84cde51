// @start 6
// @long
/** Plugins come and go under constant load: no request fails and nothing grows. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { startLoad } from '../../support/http/constant-load.ts';
import { Nas } from '../../support/nas/nas.ts';
import { holdings, probeEnv } from '../../support/daemon/heap-probe.ts';
import type { Holdings } from '../../support/daemon/heap-probe.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const SWAPS = inForm({ short: 40, long: 300 });
const CLIENTS = 16;
/** Swaps after which everything is warm and the first measure is taken. */
const WARM = inForm({ short: 14, long: 60 });

describe(`${SWAPS} swaps of the plugin set under ${CLIENTS} clients`, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let socket: string;

  before(async () => {
    scratch = await createScratch('swaps');
    const nas = await Nas.create(scratch, { files: { 'x.bin': 1000 } });
    socket = scratch.path('probe');
    daemon = await Daemon.create(scratch, {
      env: probeEnv(socket),
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const exampleState = async (): Promise<string> => {
    const { stdout } = await daemon.cli('plugin', 'list', '--json');
    const found = (JSON.parse(stdout) as { name: string; state: string }[]).find(
      (plugin) => plugin.name === 'example',
    );
    return found?.state ?? 'absent';
  };
  const exampleAnswers = async (): Promise<boolean> => (await daemon.get('/example')).status === 200;
  const swap = async (enabled: boolean): Promise<void> => {
    const answer = await daemon.submit(daemon.text({ sections: { 'plugins.example': { enabled } } }));
    assert.deepEqual([answer.status, answer.body.ok], [200, true], answer.text);
    const what = `the example plugin's route ${enabled ? 'answers' : 'is gone'}`;
    await until(what, async () => (await exampleAnswers()) === enabled, {
      timeoutMs: 30_000,
      everyMs: 5,
    }).catch(async (error: Error) => {
      throw new Error(
        `${error.message}; ${await daemon.cli('plugin', 'list').then(({ stdout }) => stdout)}`,
        { cause: error },
      );
    });
  };
  const swaps = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) await swap(index % 2 === 0);
  };
  /** What the process holds once the last generation has let go. */
  const settled = async (): Promise<Holdings> => {
    let last = await holdings(socket, daemon.pid);
    await until(
      'the holdings are at rest',
      async () => {
        const before = last;
        last = await holdings(socket, daemon.pid);
        return before.openFiles === last.openFiles && Math.abs(before.heapUsed - last.heapUsed) < 200_000;
      },
      { timeoutMs: 40_000, everyMs: 1_000 },
    );
    return last;
  };
  /** What is held beyond what was held first, by more than a moment's work takes. */
  const excess = (first: Holdings, last: Holdings): readonly string[] => {
    const kinds = ['Timeout', 'TCPSocketWrap', 'TCPServerWrap', 'FSEventWrap', 'ProcessWrap', 'PipeWrap'];
    const grown = kinds.map((kind) => [kind, first.resources[kind] ?? 0, last.resources[kind] ?? 0] as const);
    const counts = [['open files', first.openFiles, last.openFiles] as const, ...grown].filter(
      ([, was, is]) => is > was + 3,
    );
    return [
      ...counts,
      ...(last.heapUsed < first.heapUsed + 1_500_000
        ? []
        : [['heap', first.heapUsed, last.heapUsed] as const]),
    ].map(([what, was, is]) => `${what} ${was} → ${is}`);
  };

  it('answers every request, and holds no more handles, timers, sockets or memory than before', async (t) => {
    const beginLoad = (): ReturnType<typeof startLoad> => {
      const load = startLoad(CLIENTS, {
        port: daemon.port,
        paths: ['/api/status', '/api/status/work', '/api/config', '/api/logs?lines=5'],
      });
      // Also when a swap fails: clients that ask for ever would keep the test from ending.
      scratch.defer(() => load.stop());
      return load;
    };
    const warming = beginLoad();
    await swaps(WARM);
    await warming.stop();
    const first = await settled();
    const pid = await daemon.rclonePid('work');
    const load = beginLoad();
    const start = performance.now();
    await swaps(SWAPS);
    const spanMs = performance.now() - start;
    const report = await load.stop();
    let last = await settled();
    // A cycle that is under way holds something, too; what has grown for good stays.
    await until(
      'no more is held than before',
      async () => excess(first, (last = await holdings(socket, daemon.pid))).length === 0,
      { timeoutMs: 20_000, everyMs: 300 },
    ).catch(() => undefined);
    t.diagnostic(
      `${report.answers} answers, one swap every ${Math.round(spanMs / SWAPS)} ms; ` +
        `heap ${(first.heapUsed / 1e6).toFixed(1)} → ${(last.heapUsed / 1e6).toFixed(1)} MB; ` +
        `${JSON.stringify(first.resources)} → ${JSON.stringify(last.resources)}`,
    );
    assert.deepEqual(report.failures.slice(0, 5), []);
    assert.ok(report.answers > SWAPS);
    assert.deepEqual(excess(first, last), []);
    assert.equal(await daemon.rclonePid('work'), pid, 'no mount was touched');
  });

  it('switches a plugin by an edit of the file on disk as well', async () => {
    await daemon.writeConfig(daemon.text({ sections: { 'plugins.example': { enabled: true } } }));
    await until('the example plugin is active', async () => (await exampleState()) === 'active', {
      timeoutMs: 30_000,
    });
    await daemon.writeConfig(daemon.text({ sections: { 'plugins.example': { enabled: false } } }));
    await until('the example plugin is disabled', async () => (await exampleState()) === 'disabled', {
      timeoutMs: 30_000,
    });
  });

  it('keeps the API in shape while a whole plugin of it is off', async () => {
    const off = await daemon.submit(daemon.text({ sections: { 'plugins.logs': { enabled: false } } }));
    assert.equal(off.body.ok, true, off.text);
    await until('the logs are gone', async () => (await daemon.get('/api/logs')).status === 404, {
      timeoutMs: 20_000,
    });
    assert.equal((await daemon.get('/api/status')).status, 200);
    const on = await daemon.submit(daemon.text());
    assert.equal(on.body.ok, true, on.text);
    await until('the logs are back', async () => (await daemon.get('/api/logs')).status === 200, {
      timeoutMs: 20_000,
    });
  });
});
