// @load quiet
// @start 3
/** Notifications reach a real receiver once each, however it behaves, and the daemon never waits for it. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { WebhookReceiver } from '../../support/webhooks/webhook-receiver.ts';
import type { Received } from '../../support/webhooks/webhook-receiver.ts';

const SECRET = 'Wort-des-Empfängers';

interface TestAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly id: string;
}

describe('webhooks', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let receiver: WebhookReceiver;
  const taken = (type: string): readonly Received[] =>
    receiver.taken.filter(({ body }) => body.type === type);
  const sendTest = async (): Promise<TestAnswer> =>
    (await daemon.request<TestAnswer>('POST', '/api/webhooks/test')).body;

  before(async () => {
    scratch = await createScratch('webhooks');
    nas = await Nas.create(scratch, { files: { 'a/x.bin': 100 } });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    receiver = await WebhookReceiver.start(scratch);
    await writeFile(scratch.path('secret'), SECRET);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [
        { name: 'work', connection: 'nas', remote_path: 'a' },
        { name: 'late', connection: 'nas', remote_path: 'not-yet' },
      ],
      sections: {
        notifications: {
          webhook_url: receiver.url,
          allow_private: true,
          webhook_secret: { file: scratch.path('secret') },
          cache_threshold_pct: 0,
        },
      },
    });
    await daemon.start();
    await daemon.healthy(['work']);
  });
  after(() => scratch.close());

  it('are signed, and carry no secret', async () => {
    const sent = await daemon.cli('webhook', 'test');
    assert.deepEqual([sent.code, sent.stdout.trim()], [0, 'Delivered'], sent.stderr);
    const [got] = taken('test');
    assert.ok(got);
    const { headers, text, body } = got;
    // The scheme's own library.
    const verifier = new Webhook(Buffer.from(SECRET), { format: 'raw' });
    const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    assert.deepEqual(verifier.verify(text, plain), body);
    assert.throws(() => verifier.verify(text.replace('test', 'best'), plain), /signature/i);
    assert.equal(body.id, headers['webhook-id']);
    assert.ok(!text.includes(SECRET));
  });

  it('arrive once each though the receiver is down, slow, garbled, failing or busy', async (t) => {
    let slowestCycle = 0;
    const end = new AbortController();
    const watching = (async () => {
      let last = { uptime: '', at: performance.now() };
      while (!end.signal.aborted) {
        const { uptime } = await daemon.status();
        if (uptime !== last.uptime) {
          if (last.uptime !== '') slowestCycle = Math.max(slowestCycle, performance.now() - last.at);
          last = { uptime, at: performance.now() };
        }
        await sleep(100);
      }
    })();
    const ids = new Map<string, string>();
    const begin = async (name: string, pattern: RegExp): Promise<void> => {
      const answer = await sendTest();
      assert.equal(answer.ok, false, name);
      assert.match(answer.message, pattern);
      ids.set(name, answer.id);
    };
    // First of all, while nothing else waits: who is asked for patience after a second failure has it for
    // half a minute.
    receiver.manner = { kind: 'status', status: 429, headers: { 'retry-after': '7' } };
    await begin('busy', /answered 429/);
    // Nor is anything else due yet, which would be sent before it, as slowly.
    receiver.manner = { kind: 'slow', ms: 4_000 };
    const slow = await sendTest();
    assert.equal(slow.ok, true, slow.message);
    receiver.manner = { kind: 'status', status: 500 };
    await begin('failing', /answered 500/);
    receiver.manner = { kind: 'garbage' };
    await begin('garbled', /no HTTP/);
    receiver.manner = { kind: 'status', status: 307, headers: { location: 'http://127.0.0.2:9/steal' } };
    await begin('redirecting', /redirects to another host/);
    await receiver.close();
    await begin('down', /refuses connections/);
    receiver.manner = { kind: 'good' };
    await receiver.open();
    const arrived = (id: string): readonly Received[] => receiver.taken.filter(({ body }) => body.id === id);
    await until('all have arrived', () => [...ids.values()].every((id) => arrived(id).length > 0), {
      timeoutMs: 60_000,
    });
    await sleep(1_500);
    end.abort();
    await watching;
    for (const [name, id] of [...ids, ['slow', slow.id] as const]) assert.equal(arrived(id).length, 1, name);
    // To the second try, whatever became of it.
    const tries = [...receiver.refused, ...receiver.taken]
      .filter(({ body }) => body.id === ids.get('busy'))
      .map(({ atMs }) => atMs)
      .sort((a, b) => a - b);
    const waited = (tries[1] ?? 0) - (tries[0] ?? Infinity);
    assert.ok(waited > 6_500, `Retry-After kept: ${waited} ms`);
    t.diagnostic(
      `slowest cycle ${Math.round(slowestCycle)} ms, the busy one came after ${Math.round(waited)} ms`,
    );
    // One that waited for the slow receiver would take 5 s.
    assert.ok(slowestCycle < 4_500, `${slowestCycle} ms`);
  });

  it('tell that a share has failed, once, and that it is healed', async () => {
    await until('the failed share is told of', () => taken('share.failed').length > 0, { timeoutMs: 60_000 });
    const [failed] = taken('share.failed');
    assert.equal(failed?.body.data['share'], 'late');
    assert.match(String(failed?.body.data['reason']), /path is not there/);
    await mkdir(nas.path('not-yet'));
    await daemon.request('POST', '/api/reconnect/late');
    await until('it is told to be healed', () => taken('share.healed').length > 0, { timeoutMs: 30_000 });
    assert.equal(taken('share.failed').length, 1);
  });

  const notify = async (keys: Readonly<Record<string, number>>): Promise<void> => {
    const answer = await daemon.submit(daemon.text({ sections: { notifications: keys } }));
    assert.equal(answer.body.ok, true, answer.text);
  };

  it('tell once that more files wait than the threshold, and once that they no longer do', async () => {
    const files = new Files(scratch);
    await notify({ writeback_depth: 3 });
    await daemon.request('POST', '/api/bwlimit', { up: '10K', down: '0' });
    // What is written before each rclone has its part goes up at full speed, and nothing ever waits.
    await until(
      'the limit holds',
      async () => {
        const { shares } = (await daemon.get<{ shares: readonly { up: number }[] }>('/api/bwlimit')).body;
        return shares.length === 2 && shares.every(({ up }) => up > 0);
      },
      { timeoutMs: 20_000 },
    );
    for (const index of [1, 2, 3, 4, 5, 6])
      await files.write(`${daemon.mountPoint('work')}/${index}.bin`, 40_000);
    await until('it is told', () => taken('writeback.exceeded').length > 0, { timeoutMs: 30_000 });
    await daemon.request('POST', '/api/bwlimit', { up: '0', down: '0' });
    await until('it is told to be back to normal', () => taken('writeback.normal').length > 0, {
      timeoutMs: 60_000,
    });
    assert.deepEqual([taken('writeback.exceeded').length, taken('writeback.normal').length], [1, 1]);
    assert.ok(Number(taken('writeback.exceeded')[0]?.body.data['files']) > 3);
    await notify({ writeback_depth: 0 });
  });

  it('tell once that the cache disk is fuller than the threshold', async () => {
    await notify({ cache_threshold_pct: 1 });
    await until('it is told', () => taken('cache.threshold').length > 0, { timeoutMs: 30_000 });
    await sleep(2_500);
    assert.deepEqual(
      taken('cache.threshold').map(({ body }) => [body.data['share'], body.data['threshold_percent']]),
      [[null, 1]],
    );
    await notify({ cache_threshold_pct: 0 });
  });

  it('survive a killed daemon: a NAS that stays offline is told once, and its return once', async () => {
    await receiver.close();
    const { ok, id } = await sendTest();
    assert.equal(ok, false);
    await relay.cut();
    await daemon.end();
    const outages = `${daemon.stateDir}/nas-watch/outages.json`;
    await mkdir(dirname(outages), { recursive: true });
    await writeFile(outages, JSON.stringify({ nas: { since: Date.now() - 600_000, isTold: false } }));
    await receiver.open();
    await daemon.start();
    // The second wait, should there have been time for a second try, is up to 36 s.
    await until('the event of before arrives', () => receiver.taken.some(({ body }) => body.id === id), {
      timeoutMs: 60_000,
    });
    await until('the outage is told of', () => taken('nas.offline').length > 0, { timeoutMs: 30_000 });
    await relay.restore();
    await until('the return is told of', () => taken('nas.back').length > 0, { timeoutMs: 30_000 });
    assert.ok(Number(taken('nas.back')[0]?.body.data['duration_seconds']) >= 600);
    assert.deepEqual(
      [
        taken('nas.offline').length,
        taken('nas.back').length,
        receiver.taken.filter(({ body }) => body.id === id).length,
      ],
      [1, 1, 1],
    );
  });

  it('can be looked through and sent again', async () => {
    interface Log {
      readonly deliveries: readonly { id: string; type: string; state: string }[];
    }
    // The receiver has them a moment before the daemon has its answer.
    await until(
      'all is delivered',
      async () =>
        (await daemon.get<Log>('/api/webhooks/deliveries')).body.deliveries.every(
          ({ state }) => state === 'delivered',
        ),
      { timeoutMs: 20_000 },
    );
    const log = await daemon.cli('webhook', 'log', '--json');
    const { deliveries } = JSON.parse(log.stdout) as Log;
    assert.ok(deliveries.length >= 9 && deliveries.every(({ state }) => state === 'delivered'), log.stdout);
    const back = deliveries.find(({ type }) => type === 'nas.back');
    const again = await daemon.cli('webhook', 'resend', back?.id ?? '');
    assert.deepEqual([again.code, taken('nas.back').length], [0, 2], again.stderr);
    assert.equal((await daemon.cli('webhook', 'resend', 'nobody')).code, 1);
    assert.match((await daemon.cli('webhook', 'log')).stdout, /nas\.offline +delivered/);
    assert.ok(!(await daemon.log()).includes(SECRET));
  });
});
