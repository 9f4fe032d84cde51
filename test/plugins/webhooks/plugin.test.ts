import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { stringify } from 'smol-toml';
import { definePlugin, MASK } from 'mountkeeper';
import type { WebhookEvent, WebhookMessage } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { NOTHING_CROSSED } from '../../../plugins/webhooks/events/thresholds.ts';
import webhooks from '../../../plugins/webhooks/index.ts';
import { createSaver, readMemory } from '../../../plugins/webhooks/delivery/saved-state.ts';
import type { Remembered } from '../../../plugins/webhooks/delivery/saved-state.ts';
import { runCommand } from '../../api/cli.ts';
import { until } from '../../support/platform/wait.ts';

const log = pino({ level: 'silent' });

describe('webhooks', () => {
  it('refuses addresses and formats that cannot be', async (t) => {
    const host = await createTestHost({ plugins: [webhooks], config: {} });
    t.after(() => host.close());
    await assert.rejects(host.configure({ notifications: { webhook_url: 'ftp://x' } }), /http/);
    await assert.rejects(host.configure({ notifications: { webhook_format: 'fax' } }), /webhook_format/);
    await host.configure({
      notifications: { webhook_url: 'https://example.org/x', webhook_secret: 'x', webhook_format: 'feishu' },
    });
  });

  it('sends in a format that a plugin gives, and nothing that could not be sent', async (t) => {
    const got: { readonly type: string | undefined; readonly mine: unknown; readonly body: string }[] = [];
    const receiver = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        got.push({ type: request.headers['content-type'], mine: request.headers['x-garden'], body });
        response.end('ok');
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    t.after(() => receiver.close());
    let made: () => unknown = () => undefined;
    const seen: WebhookEvent[] = [];
    const garden = definePlugin({
      name: 'garden',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Gives a format.',
      register: (ctx) =>
        ctx.webhookFormat({
          name: 'card',
          render: (about) => {
            seen.push(about);
            return made() as WebhookMessage;
          },
        }),
    });
    const { port } = receiver.address() as AddressInfo;
    const as = (webhook_format: string) => ({
      notifications: {
        webhook_url: `http://127.0.0.1:${port}/x`,
        webhook_secret: 'for this receiver',
        allow_private: true,
        webhook_format,
      },
    });
    const host = await createTestHost({ plugins: [webhooks, garden], config: as('garden/card') });
    t.after(() => host.close());
    const test = async () =>
      ((await host.inject({ method: 'POST', url: '/api/webhooks/test' })).json() as { message: string })
        .message;
    made = () => ({ headers: { 'Content-Type': 'text/x-garden', 'x-garden': 'yes' }, body: 'a bed, 群' });
    assert.match(await test(), /^Delivered/);
    assert.deepEqual(got.pop(), { type: 'text/x-garden', mine: 'yes', body: 'a bed, 群' });
    assert.deepEqual(Object.keys(seen[0] ?? {}).sort(), ['at', 'event', 'host', 'id']);
    assert.ok(!JSON.stringify(seen).includes('for this receiver'));
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [undefined, /it gave no text as body/],
      [{ body: 7 }, /it gave no text as body/],
      [{ body: 'x'.repeat(65_537) }, /its body has more than 65536 bytes/],
      [{ body: '', headers: { 'x-a': 'b\r\nhost: other' } }, /may not send the header "x-a"/],
      [{ body: '', headers: { Host: 'other' } }, /may not send the header "Host"/],
      [{ body: '', headers: { 'x a': 'b' } }, /may not send the header "x a"/],
      [
        { body: '', headers: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`x${at}`, ''])) },
        /at most 20/,
      ],
    ];
    for (const [given, sentence] of wrong) {
      made = () => given;
      const message = await test();
      assert.match(message, /^Not delivered: the format "garden\/card" of a plugin failed: /);
      assert.match(message, sentence);
    }
    made = () => {
      throw new Error('no beds left');
    };
    assert.match(await test(), /failed: no beds left/);
    assert.equal(got.length, 0);
    await host.configure(as('slack'));
    assert.match(await test(), /^Delivered/);
    assert.match(String(got.at(-1)?.body), /^\{"text":"Mountkeeper \(/);
    const notices = async () => (await host.hooks.collect('collectNotices')).map(({ message }) => message);
    assert.deepEqual(await notices(), []);
    await host.configure(as('garden/post'));
    assert.match((await notices()).join(), /no plugin that is up gives the format "garden\/post"/);
    assert.match(await test(), /^Not delivered: no plugin that is up gives the format "garden\/post"/);
    for (const odd of ['fax', 'garden/', 'a/b/c'])
      await assert.rejects(host.configure(as(odd)), /must be one of/);
  });

  it('takes no address over HTTP that only this machine reaches, but keeps what the file says', async (t) => {
    const host = await createTestHost({ plugins: [webhooks], config: {} });
    t.after(() => host.close());
    const over = (notifications: object) =>
      host.config.check(stringify({ connections: [], notifications }), 'http');
    for (const webhook_url of [
      'http://127.0.0.1:9/x',
      'http://localhost/',
      'http://0x7f.1/',
      'http://[64:ff9b::7f00:1]/',
      'http://169.254.169.254/latest',
    ]) {
      const check = await over({ webhook_url });
      assert.match(
        check.ok ? 'accepted' : check.message,
        /notifications\.webhook_url names a (loopback|link-local) address.*notifications\.allow_private = true/,
        webhook_url,
      );
    }
    assert.equal((await over({ webhook_url: 'http://192.168.1.5/' })).ok, true);
    const kept = { webhook_url: 'http://127.0.0.1:9/x' };
    await host.configure({ notifications: kept });
    assert.equal((await over({ ...kept, writeback_depth: 5 })).ok, true);
  });

  it('tells of an address in the file that it does not send to, and sends there once it is allowed', async (t) => {
    const webhook_url = 'http://localhost:1/x';
    const host = await createTestHost({ plugins: [webhooks], config: { notifications: { webhook_url } } });
    t.after(() => host.close());
    const told = async () => [
      ...(await host.hooks.collect('collectNotices')).map(({ message }) => message),
      ...(await host.hooks.collect('collectChecks', host.config.current.config)).map(({ detail }) => detail),
    ];
    const test = async () =>
      ((await host.inject({ method: 'POST', url: '/api/webhooks/test' })).json() as { message: string })
        .message;
    const found = await told();
    assert.equal(found.length, 2);
    for (const message of found)
      assert.match(
        message,
        /^no notifications are sent: notifications\.webhook_url names a loopback address/,
      );
    assert.match(await test(), /^Not delivered: the address names a loopback address/);
    await host.configure({ notifications: { webhook_url, allow_private: true } });
    assert.deepEqual(await told(), []);
    assert.match(await test(), /^Not delivered: the receiver refuses connections/);
  });

  it('shows its address to nobody: with chat services it is the secret', async (t) => {
    const secret = 'https://hooks.slack.com/services/T0/B0/geheim-1';
    const host = await createTestHost({
      plugins: [webhooks],
      config: { notifications: { webhook_url: secret } },
    });
    t.after(() => host.close());
    const { notifications } = host.config.redacted() as { notifications: { webhook_url: string } };
    assert.equal(notifications.webhook_url, MASK);
    const other = await host.config.check(
      stringify({ connections: [], notifications: { webhook_url: secret.replace('-1', '-2') } }),
      'http',
    );
    assert.equal(other.ok && other.diff.summary, 'notifications.webhook_url: changed');
    const none = await host.config.check(stringify({ connections: [] }), 'http');
    assert.equal(none.ok && none.diff.summary, 'notifications.webhook_url: cleared');
    const masked = await host.config.check(
      stringify({ connections: [], notifications: { webhook_url: MASK } }),
      'http',
    );
    assert.match(masked.ok ? 'accepted' : masked.message, /holds the mask/);
  });

  it('has nowhere to send to without an address, and says so', async (t) => {
    const host = await createTestHost({ plugins: [webhooks], config: {} });
    t.after(() => host.close());
    const test = (await host.inject({ method: 'POST', url: '/api/webhooks/test' })).json() as {
      ok: boolean;
      message: string;
    };
    assert.deepEqual([test.ok, /webhook_url/.test(test.message)], [false, true]);
    assert.deepEqual((await host.inject('/api/webhooks/deliveries')).json(), { deliveries: [] });
  });

  it('takes events of any plugin, keeps them and goes on after it was switched off', async (t) => {
    const config = { notifications: { webhook_url: 'http://127.0.0.1:1/x', allow_private: true } };
    const event = { type: 'mine.own', severity: 'info', message: 'm', data: {}, key: 'k' } as const;
    const sender = definePlugin({
      name: 'sender',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Sends.',
      register: (ctx) => ctx.tap('afterCycle', () => ctx.send('notify', event)),
    });
    const host = await createTestHost({ plugins: [webhooks, sender], config });
    t.after(() => host.close());
    const deliveries = async () =>
      (
        (await host.inject('/api/webhooks/deliveries')).json() as {
          deliveries: { type: string; state: string; attempts: { problem: string }[] }[];
        }
      ).deliveries;
    const tell = () =>
      host.hooks.observe('afterCycle', { version: 1, takenAt: 0, record: { shares: [] } } as never);
    await tell();
    await tell();
    const seen = await until(
      'it was tried',
      async () => {
        const now = await deliveries();
        return now[0]?.attempts.length === 1 ? now : undefined;
      },
      { timeoutMs: 20_000, everyMs: 5 },
    );
    assert.deepEqual(
      seen.map(({ type, state }) => [type, state]),
      [['mine.own', 'waiting']],
    );
    assert.match(seen[0]?.attempts[0]?.problem ?? '', /refuses connections/);
    await host.configure({ ...config, plugins: { webhooks: { enabled: false } } });
    await host.configure(config);
    assert.equal((await deliveries()).length, 1);
  });
});

describe('the memory', () => {
  it('reads back the latest state; a damaged file loses nothing but itself', async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'mk-memory-'));
    t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const file = path.join(folder, 'webhooks', 'deliveries.json');
    assert.deepEqual(await readMemory(file, log), { version: 1, deliveries: [], crossed: NOTHING_CROSSED });
    let crossed = NOTHING_CROSSED;
    const saver = createSaver(file, (): Remembered => ({ version: 1, deliveries: [], crossed }), log);
    for (let depth = 0; depth < 50; depth += 1) {
      crossed = { ...NOTHING_CROSSED, caches: [`share${depth}`] };
      saver.save();
    }
    await saver.settled();
    assert.deepEqual((await readMemory(file, log)).crossed.caches, ['share49']);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    const whole = {
      id: 'msg_1',
      event: { key: 'k', type: 'test' },
      createdAt: 1,
      nextAt: 1,
      state: 'waiting',
      tries: 0,
      attempts: [],
    };
    await writeFile(
      file,
      JSON.stringify({
        version: 1,
        deliveries: [null, {}, { ...whole, attempts: undefined }, whole, { ...whole, event: {} }],
      }),
    );
    assert.deepEqual(
      (await readMemory(file, log)).deliveries.map(({ id }) => id),
      ['msg_1'],
      'one that is damaged keeps none of the others back',
    );
    await writeFile(file, (await readFile(file, 'utf8')).slice(0, 20));
    assert.deepEqual((await readMemory(file, log)).deliveries, []);
  });
});

describe('mountkeeper webhook', () => {
  it('shows what became of notifications', async () => {
    const body = JSON.stringify({
      deliveries: [
        {
          id: 'msg_1',
          type: 'test',
          message: '',
          created_at: 'T',
          state: 'delivered',
          tries: 1,
          next_at: null,
          attempts: [{ at: 'T', ms: 12, status: 200, problem: null }],
        },
        {
          id: 'msg_2',
          type: 'test',
          message: '',
          created_at: 'T',
          state: 'waiting',
          tries: 1,
          next_at: 'N',
          attempts: [{ at: 'T', ms: 12, status: 500, problem: 'the receiver answered 500' }],
        },
      ],
    });
    const shown = await runCommand(webhooks, ['webhook', 'log'], {
      request: async () => ({ status: 200, body }),
    });
    assert.deepEqual(
      shown.tables[0]?.slice(1).map((row) => row.at(-1)),
      ['200 in 12 ms', 'the receiver answered 500; next at N'],
    );
  });

  it('says so when there is nothing to show', async () => {
    const shown = await runCommand(webhooks, ['webhook', 'log'], {
      request: async () => ({ status: 200, body: '{"deliveries":[]}' }),
    });
    assert.deepEqual(shown.tables, []);
    assert.match(shown.printed.join(' '), /No notifications so far/);
  });

  it('exits with 64 for what it does not know', async () => {
    for (const args of [[], ['x'], ['resend'], ['test', 'y'], ['log', 'y']]) {
      assert.equal(
        (
          await runCommand(webhooks, ['webhook', ...args], {
            request: async () => ({ status: 200, body: '{}' }),
          })
        ).code,
        64,
      );
    }
  });
});
