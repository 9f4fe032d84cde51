import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { addressProblem } from '../../../../plugins/webhooks/delivery/address.ts';
import type { Delivery } from '../../../../plugins/webhooks/delivery/delivery.ts';
import { formatOf, outgoing, refusalIn, signatureOf } from '../../../../plugins/webhooks/delivery/formats.ts';
import type { Format, Outgoing, WrittenHere } from '../../../../plugins/webhooks/delivery/formats.ts';
import { discord, slack } from '../../../../plugins/webhooks/delivery/text-formats.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const delivery: Delivery = {
  id: 'msg_1',
  createdAt: NOW - 5_000,
  state: 'waiting',
  tries: 0,
  nextAt: 0,
  isAskedToWait: false,
  attempts: [],
  event: {
    type: 'nas.offline',
    severity: 'error',
    message: '<NAS> & "群" offline',
    data: { connection: 'nas', duration_seconds: 300 },
    key: 'k',
  },
};
const asEvent = ({ id, event, createdAt }: Delivery) => ({ id, event, at: createdAt, host: 'attic' });
const written = (format: Format, address: string, secret = '') => {
  const url = new URL(address);
  const given = { slack, discord }[format as string];
  const out: Outgoing = given
    ? { url, headers: {}, ...given.render(asEvent(delivery)) }
    : outgoing(format as WrittenHere, delivery, { url, around: { host: 'attic', secret, now: NOW } });
  return { ...out, json: () => JSON.parse(out.body) as Record<string, unknown> };
};

describe('the signature', () => {
  it('is that of Standard Webhooks', () => {
    const signed = { body: '{"test": 2432232314}', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
    assert.equal(
      signatureOf('msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, signed),
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  it('takes any other secret as it is', () => {
    const expected = createHmac('sha256', '密码 secret').update('id.7.body').digest('base64');
    assert.equal(signatureOf('id', 7, { body: 'body', secret: '密码 secret' }), `v1,${expected}`);
  });
});

describe('the payload', () => {
  it('is the documented one, with identity, time and signature in the headers', () => {
    const { headers, json, body } = written('generic', 'https://example.org/hook', 'whsec_c2VjcmV0');
    assert.deepEqual(json(), {
      version: 1,
      id: 'msg_1',
      type: 'nas.offline',
      timestamp: '2026-01-01T11:59:55.000Z',
      severity: 'error',
      message: '<NAS> & "群" offline',
      source: { service: 'mountkeeper', host: 'attic' },
      data: { connection: 'nas', duration_seconds: 300 },
    });
    assert.deepEqual([headers['webhook-id'], headers['webhook-timestamp']], ['msg_1', String(NOW / 1000)]);
    assert.equal(
      headers['webhook-signature'],
      signatureOf('msg_1', NOW / 1000, { body, secret: 'whsec_c2VjcmV0' }),
    );
    assert.equal(written('generic', 'https://example.org/hook').headers['webhook-signature'], undefined);
  });

  it('speaks as each service expects', () => {
    assert.deepEqual(written('slack', 'https://hooks.slack.com/x').json(), {
      text: 'Mountkeeper (attic): &lt;NAS&gt; &amp; "群" offline',
    });
    assert.deepEqual(written('discord', 'https://discord.com/api/webhooks/x').json(), {
      content: 'Mountkeeper (attic): <NAS> & "群" offline',
      allowed_mentions: { parse: [] },
    });
    assert.deepEqual(written('wecom', 'https://qyapi.weixin.qq.com/x').json(), {
      msgtype: 'text',
      text: { content: 'Mountkeeper (attic): <NAS> & "群" offline' },
    });
    const ntfy = written('ntfy', 'https://ntfy.sh/topic', 'tk_1');
    assert.deepEqual(
      [ntfy.body, ntfy.headers['priority'], ntfy.headers['authorization']],
      ['Mountkeeper (attic): <NAS> & "群" offline', 'high', 'Bearer tk_1'],
    );
  });

  it('is no longer than the service takes, with whole characters', () => {
    const long = { ...delivery, event: { ...delivery.event, message: '群'.repeat(3_000) } };
    for (const [format, most] of [
      ['wecom', 2_048],
      ['ntfy', 4_096],
    ] as const) {
      const { body } = outgoing(format, long, {
        url: new URL('https://example.org/'),
        around: { host: 'attic', secret: '', now: NOW },
      });
      const text =
        format === 'ntfy' ? body : (JSON.parse(body) as { text: { content: string } }).text.content;
      assert.ok(
        Buffer.byteLength(text) <= most && Buffer.byteLength(text) > most - 6,
        `${format}: ${Buffer.byteLength(text)}`,
      );
      assert.match(text, /群…$/);
    }
    const { body } = discord.render(asEvent(long));
    assert.equal((JSON.parse(body) as { content: string }).content.length, 2_000);
  });

  it('is signed in the ways of 钉钉 and 飞书', () => {
    const dingtalk = written('dingtalk', 'https://oapi.dingtalk.com/robot/send?access_token=t', 'SECx');
    assert.deepEqual(
      [...dingtalk.url.searchParams],
      [
        ['access_token', 't'],
        ['timestamp', String(NOW)],
        ['sign', createHmac('sha256', 'SECx').update(`${NOW}\nSECx`).digest('base64')],
      ],
    );
    assert.equal(dingtalk.json()['msgtype'], 'text');
    const feishu = written('feishu', 'https://open.feishu.cn/open-apis/bot/v2/hook/x', 's').json();
    assert.deepEqual(
      [feishu['msg_type'], feishu['timestamp'], feishu['sign']],
      ['text', String(NOW / 1000), createHmac('sha256', `${NOW / 1000}\ns`).digest('base64')],
    );
    assert.equal(written('feishu', 'https://open.feishu.cn/x').json()['sign'], undefined);
  });

  it('holds no secret in any format', () => {
    for (const format of ['generic', 'slack', 'discord', 'ntfy', 'wecom', 'dingtalk', 'feishu'] as const) {
      const out = written(format, 'https://example.org/hook', 'very-secret');
      assert.ok(!out.body.includes('very-secret') && !out.url.href.includes('very-secret'), format);
    }
  });
});

describe('the format', () => {
  it('is told by the address', () => {
    const formats = [
      'https://hooks.slack.com/services/x',
      'https://discord.com/api/webhooks/1',
      'https://ntfy.sh/t',
      'https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=k',
      'https://oapi.dingtalk.com/robot/send',
      'https://open.feishu.cn/x',
      'https://open.larksuite.com/x',
      'https://example.org/slack',
      'https://evildiscord.com/',
    ].map((address) => formatOf(new URL(address)));
    assert.deepEqual(formats, [
      'slack',
      'discord',
      'ntfy',
      'wecom',
      'dingtalk',
      'feishu',
      'feishu',
      'generic',
      'generic',
    ]);
  });

  it('knows a refusal that comes with status 200', () => {
    assert.equal(refusalIn('wecom', '{"errcode":0,"errmsg":"ok"}'), undefined);
    assert.match(
      refusalIn('wecom', '{"errcode":93000,"errmsg":"invalid webhook url"}') ?? '',
      /93000 invalid/,
    );
    assert.match(refusalIn('feishu', '{"code":19021,"msg":"sign match fail"}') ?? '', /19021 sign/);
    assert.match(refusalIn('dingtalk', '<html>') ?? '', /no JSON/);
    assert.equal(refusalIn('generic', '<html>'), undefined);
  });
});

describe('the address', () => {
  it('must be http or https, and no link-local or metadata address in any spelling', () => {
    for (const good of [
      '',
      'https://example.org/x',
      'http://127.0.0.1:9/x',
      'http://192.168.1.5/',
      'http://me:50%25@example.org/',
      'http://[::1]/',
    ])
      assert.equal(addressProblem(good), undefined, good);
    for (const bad of [
      'example.org',
      'ftp://example.org/',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'http://me:50%@example.org/',
    ])
      assert.notEqual(addressProblem(bad), undefined, bad);
  });
});
