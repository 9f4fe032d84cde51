/** What smbd writes of sign-ins: lines of Samba 4.17, and what strangers can make of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { ManagedProcess } from 'mountkeeper';
import { awaitReady } from '../../../../plugins/smb/smbd.ts';
import { refusalIn } from '../../../../plugins/smb/sign-ins/refusal.ts';

const NOW = Date.parse('2026-11-27T12:30:00Z');
const says = { now: NOW, hasGuests: false };

const lineOf = (said: object = {}, type = 'Authentication'): string =>
  JSON.stringify({
    timestamp: '2026-11-27T12:29:59.250000+0000',
    type,
    Authentication: {
      version: { major: 1, minor: 2 },
      eventId: 4625,
      logonId: '0',
      logonType: 3,
      status: 'NT_STATUS_WRONG_PASSWORD',
      localAddress: 'ipv4:192.0.2.10:445',
      remoteAddress: 'ipv4:192.0.2.7:50000',
      serviceDescription: 'SMB2',
      authDescription: null,
      clientDomain: 'WORKGROUP',
      clientAccount: 'alice',
      workstation: 'LAPTOP',
      passwordType: 'NTLMv2',
      ...said,
    },
  }).replaceAll(/(?<=[^\\]"):(?=["{\dn])|,(?=")/g, '$& ');

describe('a sign-in that smbd refuses', () => {
  it('is found with its address, its name and its time', () => {
    assert.deepEqual(refusalIn(lineOf(), says), {
      address: '192.0.2.7',
      user: 'alice',
      isNobody: false,
      at: NOW - 750,
    });
    const addresses = ['ipv6:2001:db8::7:50000', 'ipv6:::ffff:192.0.2.8:50000', 'unix:', '7', ''].map(
      (remoteAddress) => refusalIn(lineOf({ remoteAddress }), says)?.address,
    );
    assert.deepEqual(addresses, ['2001:db8::7', '192.0.2.8', 'unknown', 'unknown', 'unknown']);
    for (const clientAccount of [null, '', 7, { a: 1 }])
      assert.equal(refusalIn(lineOf({ clientAccount }), says)?.user, null);
  });

  it('is none that was let in, nor a name that guests come in by', () => {
    assert.equal(refusalIn(lineOf({ status: 'NT_STATUS_OK' }), says), undefined);
    const unknown = lineOf({ status: 'NT_STATUS_NO_SUCH_USER' });
    assert.deepEqual([refusalIn(unknown, says)?.user, refusalIn(unknown, says)?.isNobody], ['alice', true]);
    assert.equal(refusalIn(unknown, { ...says, hasGuests: true }), undefined);
    assert.equal(refusalIn(lineOf(), { ...says, hasGuests: true })?.user, 'alice');
  });

  it('is none without a password: clients begin so, and nobody comes in by it', () => {
    const line = lineOf({ passwordType: 'No-Password' });
    assert.equal(refusalIn(line, says), undefined);
    // What a client sends is no proof of it.
    const sent = lineOf({ workstation: '"passwordType": "No-Password"' });
    for (const cut of [0, 1, 20])
      assert.equal(refusalIn(sent.slice(0, sent.length - cut), says)?.user, 'alice');
  });

  it('has the time of now where it tells of no time that has been', () => {
    for (const timestamp of ['', 'x', '2099-01-01T00:00:00+0000', '1950-01-01T00:00:00+0000'])
      assert.equal(refusalIn(lineOf().replace(/2026[^"]*/, timestamp), says)?.at, NOW);
  });

  it('is found in a line that is too long, broken off or mixed with others, with its name where that is whole', () => {
    const named = { address: '192.0.2.7', user: 'alice', isNobody: false, at: NOW - 750 };
    const nameless = { ...named, user: null };
    assert.deepEqual(refusalIn(lineOf({ clientAccount: 'x'.repeat(5_000) }), says), nameless);
    assert.deepEqual(refusalIn(lineOf({ workstation: '"'.repeat(90_000) }), says), named);
    assert.deepEqual(
      refusalIn(`${lineOf({ workstation: 'x'.repeat(900) }).slice(0, 1_020)} +>`, says),
      named,
    );
    assert.deepEqual(refusalIn(lineOf({ clientDomain: 'x'.repeat(900) }).slice(0, 1_020), says), nameless);
    assert.deepEqual(refusalIn(lineOf({ clientAccount: 'a\\"\n"' }).slice(0, -1), says)?.user, 'a\\"\n"');
    assert.deepEqual(
      refusalIn(`${lineOf().slice(0, 350)}${lineOf({ remoteAddress: 'ipv4:1.2.3.4:5' })}`, says),
      named,
    );
    // A client that sends the words of a line is told by its own address and name.
    const words = lineOf({ remoteAddress: 'ipv4:198.51.100.1:1', clientAccount: 'bob' });
    assert.deepEqual(refusalIn(lineOf({ clientDomain: words, workstation: 'x'.repeat(9_000) }), says), named);
  });

  it('is not told as the reason why smbd does not answer', async () => {
    const lines = [...Array.from({ length: 5 }, () => lineOf()), 'no such interface', lineOf()];
    const process = { isAlive: () => false, tail: async (count: number) => lines.slice(-count) };
    const awaiting = {
      clock: createManualClock(),
      signal: new AbortController().signal,
      port: 445,
      ask: () => Promise.reject(new Error('closed')),
    };
    const ready = awaitReady(process as unknown as ManagedProcess, awaiting);
    await assert.rejects(ready, { message: 'smbd does not answer on port 445: no such interface' });
  });

  it('is in no other line', () => {
    const forged = JSON.stringify({ clientDomain: lineOf() }).slice('{"clientDomain":"'.length);
    const others = [
      '',
      '{',
      'smbd version 4.17.12-Debian started.',
      ` ${lineOf()}`,
      lineOf().slice(1),
      lineOf().slice(0, 200),
      lineOf({}, 'Authorization'),
      '{"timestamp": "x"}',
      '{"timestamp": "x", "type": "Authentication", "Authentication": null}',
      '{"timestamp": "x", "type": "Authentication"',
      '[2026/11/27 12:00:00.000000,  0] smbd/server.c:1 (main)',
      forged,
      '\u0000\uffff{"timestamp"',
    ];
    for (const line of others) assert.equal(refusalIn(line, says), undefined, line);
    for (let index = 0; index < 2_000; index += 1) {
      const line = [...lineOf()].map((sign) => (Math.random() < 0.01 ? '"\\{},\n\u0000x'[index % 8] : sign));
      assert.doesNotThrow(() => refusalIn(line.join(''), says));
    }
  });
});
