import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusedKind, targetProblem } from '../../../../plugins/webhooks/delivery/address.ts';
import { embeddedAddresses } from '../../../../plugins/webhooks/delivery/embedded-address.ts';

describe('an address that gets no notifications', () => {
  it('is one that only this machine or its cloud reaches', () => {
    const kinds: Readonly<Record<string, readonly string[]>> = {
      'a loopback address': ['127.0.0.1', '127.255.0.9', '::1'],
      'a link-local address': ['169.254.169.254', '169.254.0.1', 'fe80::1', 'febf::1', 'fe80::1%eth0'],
      'a metadata address': [
        '100.100.100.200',
        '192.0.0.192',
        '168.63.129.16',
        'fd00:ec2::254',
        'fd20:ce::254',
      ],
      'the unspecified address': ['0.0.0.0', '0.1.2.3', '::'],
    };
    for (const [kind, addresses] of Object.entries(kinds))
      for (const address of addresses) assert.equal(refusedKind(address), kind, address);
  });

  it('is none of the LAN or the internet', () => {
    for (const address of [
      '10.0.0.1',
      '172.16.5.4',
      '192.168.1.5',
      '100.64.0.1',
      'fd12:3456::1',
      'fec0::1',
      '2001:db8::1',
      '2a00::8',
      '8.8.8.8',
      '128.0.0.1',
      'name',
      '',
    ]) {
      assert.equal(refusedKind(address), undefined, address);
    }
  });

  it('is found inside an IPv6 address that carries it', () => {
    const carried = [
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '0:0:0:0:0:ffff:a9fe:a9fe',
      '::127.0.0.1',
      '::ffff:0:127.0.0.1',
      '64:ff9b::7f00:1',
      '64:ff9b::169.254.169.254',
      '64:ff9b:1::127.0.0.1',
      '64:ff9b:1:7f00:0:100::',
      '64:ff9b:1:abcd:0:0:a9fe:a9fe',
      '2002:7f00:1::',
      '2002:a9fe:a9fe::1',
      '2001:0:a9fe:a9fe::1',
      '2001:0:808:808:0:0:80ff:fffe',
      '2001:db8::5efe:7f00:1',
      '2001:db8:0:0:200:5efe:7f00:1',
    ];
    for (const address of carried)
      assert.match(refusedKind(address) ?? 'none', /loopback|link-local/, address);
  });

  it('is none that carries another', () => {
    for (const address of [
      '::ffff:192.168.1.5',
      '64:ff9b::808:808',
      '64:ff9b:1::8.8.8.8',
      '64:ff9b:1:808:8:800::',
      '2002:c0a8:105::1',
      '2001:db8:7f00:1::',
      '2001:db8::7f00:1',
    ]) {
      assert.equal(refusedKind(address), undefined, address);
    }
    assert.deepEqual(embeddedAddresses('2001:db8::1'), []);
  });

  it('is told in every notation of a URL, and by the names that always lead there', () => {
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '0177.0.0.1',
      '2130706433',
      '017700000001',
      '127.0.0.1.',
      '0',
      '①②⑦.⓪.⓪.①',
      '2852039166',
      '0xa9fea9fe',
      '[::1]',
      '[::]',
      '[0:0::1]',
      '[::ffff:169.254.169.254]',
      '[64:ff9b::7f00:1]',
      'localhost',
      'LocalHost',
      'localhost.',
      'x.localhost',
      '%6cocalhost',
    ]) {
      assert.match(
        targetProblem(new URL(`http://${host}:8080/x`)) ?? 'none',
        /^names .*notifications\.allow_private = true/,
        host,
      );
    }
    for (const host of [
      'example.org',
      '192.168.1.5',
      '[fd12::1]',
      'ntfy.lan',
      'localhost.example.org',
      '127.0.0.1.example.org',
    ]) {
      assert.equal(targetProblem(new URL(`https://${host}/x`)), undefined, host);
    }
  });
});
