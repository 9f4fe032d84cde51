import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  addressKey,
  clientAddress,
  guesserKey,
  trustedProxies,
} from '../../../../core/sdk/http/client-address.ts';

const PROXIES = trustedProxies(['127.0.0.1', '10.0.0.0/8', '2001:db8:f::/48']);
const behind = (headers: Record<string, string>, peer = '127.0.0.1'): string =>
  clientAddress(peer, headers, PROXIES);

describe('the client of a request', () => {
  it('is who opened the connection, whatever a stranger writes', () => {
    for (const headers of [{}, { 'x-forwarded-for': '10.1.1.1' }, { forwarded: 'for=127.0.0.1' }]) {
      assert.equal(behind(headers, '192.0.2.9'), '192.0.2.9');
      assert.equal(clientAddress('127.0.0.1', headers, trustedProxies([])), '127.0.0.1');
    }
    assert.equal(behind({}), '127.0.0.1');
  });

  it('is whom a trusted proxy names in X-Forwarded-For: the rightmost that is no proxy', () => {
    for (const [header, client] of [
      ['192.0.2.7', '192.0.2.7'],
      ['6.6.6.6, 192.0.2.7', '192.0.2.7'],
      ['6.6.6.6,192.0.2.7 , 10.2.3.4', '192.0.2.7'],
      ['192.0.2.7:4711', '192.0.2.7'],
      ['[2001:db8::7]:4711', '2001:db8::7'],
      ['2001:DB8::7', '2001:db8::7'],
      ['::ffff:192.0.2.7', '192.0.2.7'],
      ['6.6.6.6, 2001:db8:f::1, 10.2.3.4', '6.6.6.6'],
      ['10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ] as const)
      assert.equal(behind({ 'x-forwarded-for': header }), client, header);
    assert.equal(behind({ 'x-forwarded-for': '192.0.2.7' }, '::ffff:127.0.0.1'), '192.0.2.7');
    assert.equal(behind({ 'x-forwarded-for': '192.0.2.7' }, '2001:db8:f:1::2'), '192.0.2.7');
  });

  it('is whom a trusted proxy names in Forwarded', () => {
    for (const [header, client] of [
      ['for=192.0.2.60;proto=http;by=203.0.113.43', '192.0.2.60'],
      ['For="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
      ['for=6.6.6.6, for=198.51.100.17', '198.51.100.17'],
      ['for="192.0.2.43:47011"', '192.0.2.43'],
      ['proto="a,b;for=6.6.6.6";for=192.0.2.1 , FOR=10.9.9.9', '192.0.2.1'],
      ['for="192.0.2.43:_port-1"', '192.0.2.43'],
    ] as const)
      assert.equal(behind({ forwarded: header }), client, header);
  });

  it('is the proxy itself where what it says cannot be read', () => {
    for (const header of [
      '',
      'for=unknown',
      'for=_hidden',
      'by=192.0.2.1',
      'for=192.0.2.1;for=192.0.2.2',
      'for="192.0.2.1',
      'for="a"192.0.2.1"',
      'for=6.6.6.6;x=", for=192.0.2.1',
      'for=[192.0.2.1]',
      'for="[2001:db8::1"',
      'for=192.0.2.256',
      'for=192.0.2.1,',
      `for="${'\\'.repeat(4_000)}"`,
      `${'for=6.6.6.6,'.repeat(400)}for=192.0.2.1`,
    ])
      assert.equal(behind({ forwarded: header }), '127.0.0.1', header.slice(0, 80));
    for (const header of [
      '',
      'unknown',
      'nas.example',
      '192.0.2.1;192.0.2.2',
      '192.0.2.1:',
      '1.2.3',
      `${'6.6.6.6,'.repeat(600)}192.0.2.1`,
    ]) {
      assert.equal(behind({ 'x-forwarded-for': header }), '127.0.0.1', header.slice(0, 80));
    }
    assert.equal(
      behind({ 'x-forwarded-for': '6.6.6.6, unknown, 10.2.3.4' }),
      '10.2.3.4',
      'the farthest that can be vouched for',
    );
  });

  it("is the proxy itself where two headers name two clients: one of them may be a stranger's", () => {
    assert.equal(behind({ 'x-forwarded-for': '192.0.2.7', forwarded: 'for=6.6.6.6' }), '127.0.0.1');
    assert.equal(behind({ 'x-forwarded-for': '192.0.2.7', forwarded: 'for=192.0.2.7' }), '192.0.2.7');
  });

  it('is found in no time, however long and crooked the header is', () => {
    const started = process.cpuUsage();
    for (const piece of ['"', '\\', '[', ':', '1', '1.', ' ', ',', ';', '=', 'for=', 'for="', '\\"']) {
      const text = piece.repeat(1_048_576 / piece.length);
      for (const header of [text, text.slice(0, 4_096), `for="${text.slice(0, 4_000)}"`]) {
        behind({ forwarded: header });
        behind({ 'x-forwarded-for': header });
      }
    }
    const { user } = process.cpuUsage(started);
    assert.ok(user < 1_000_000, `${user} µs of processor`);
  });
});

describe('the addresses of one who guesses', () => {
  it('count as one on this machine, however many loopback has', () => {
    for (const own of ['::1', '127.0.0.1', '127.4.5.6', '::ffff:127.0.0.9'])
      assert.equal(guesserKey(own), 'loopback', own);
    for (const other of ['::2', '128.0.0.1', '10.0.0.1', '2001:db8::1'])
      assert.equal(guesserKey(other), addressKey(other), other);
  });
});

describe('the addresses of one client', () => {
  it('count as one where one machine has many', () => {
    assert.equal(addressKey('::ffff:10.0.0.1'), '10.0.0.1');
    assert.equal(addressKey('::ffff:a00:1'), '10.0.0.1');
    assert.equal(addressKey('10.0.0.1'), '10.0.0.1');
    assert.equal(addressKey('2001:db8:1:2:3:4:5:6'), addressKey('2001:DB8:1:2::1'));
    assert.equal(addressKey('2001:db8:1:2::9'), '2001:db8:1:2::/64');
    assert.notEqual(addressKey('2001:db8:1:2::1'), addressKey('2001:db8:1:3::1'));
    assert.equal(addressKey('fe80::1%eth0'), 'fe80:0:0:0::/64');
    assert.equal(addressKey('::1'), '0:0:0:0::/64');
  });
});
