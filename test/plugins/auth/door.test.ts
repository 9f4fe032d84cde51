import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import pino from 'pino';
import type { Secret } from '../../../core/api.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { createDoor } from '../../../plugins/auth/door.ts';
import { parseCredentials } from '../../../plugins/auth/credentials.ts';
import { makeHash, matchesHash, parseHash } from '../../../plugins/auth/password-hash.ts';
import { exposureOf, passwordCheck } from '../../../plugins/auth/exposure.ts';
import { clientKey, createThrottle } from '../../../plugins/auth/throttle.ts';
import { createVerifier } from '../../../plugins/auth/verifier.ts';

const log = pino({ level: 'silent' });

function header(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function createTestDoor(password: Secret, resolve: (secret: Secret) => string = String) {
  const clock = createManualClock();
  const config = { username: 'admin', password };
  const stop = new AbortController();
  const door = createDoor({ config: () => config, secrets: () => ({ resolve }), clock: () => clock, log, signal: stop.signal });
  const attempt = (text: string, address = '10.0.0.1') => door.decide({ authorization: header('admin', text), address });
  return { clock, config, stop, attempt };
}

/** The decision if there is one by now. */
async function settled<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve('waiting' as const)]);
}

describe('the door', () => {
  it('makes a guesser wait longer and longer, whatever he guesses, and nobody at another address', async () => {
    const { clock, attempt } = createTestDoor('pw');
    assert.equal(await attempt('a'), 'unauthorized');
    for (const pauseMs of [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000]) {
      const next = attempt(`guess after ${pauseMs} at ${clock.monotonic()}`);
      assert.equal(await attempt('pw', '10.0.0.2'), 'open');
      await clock.advance(pauseMs - 1);
      assert.equal(await settled(next), 'waiting');
      await clock.advance(1);
      assert.equal(await next, 'unauthorized');
    }
    const right = attempt('pw');
    assert.equal(await settled(right), 'waiting', 'a right guess must not show by its speed');
    await clock.advance(8_000);
    assert.equal(await right, 'open');
    assert.equal(await attempt('pw'), 'open');
  });

  it('refuses an address that has too many waiting', async () => {
    const { clock, attempt, stop } = createTestDoor('pw');
    await attempt('a');
    const waiting = ['b', 'c', 'd', 'e'].map((guess) => attempt(guess));
    assert.equal(await attempt('f'), 'too-many');
    assert.equal(await attempt('pw'), 'too-many');
    assert.equal(await attempt('pw', '10.0.0.2'), 'open');
    await clock.advance(250);
    stop.abort();
    const decisions = await Promise.all(waiting);
    assert.deepEqual(decisions.filter((decision) => decision === 'open'), []);
    assert.equal(decisions.filter((decision) => decision === 'unauthorized').length, 1, 'one guess per pause');
  });

  it('answers the same wrong password again without a pause', async () => {
    const { attempt } = createTestDoor('pw');
    for (let count = 0; count < 50; count += 1) assert.equal(await attempt('stale'), 'unauthorized');
  });

  it('stays shut while the reference leads nowhere and opens when it is mended', async () => {
    let text: string | undefined;
    const { clock, attempt } = createTestDoor({ file: '/x' }, () => {
      if (text === undefined) throw new Error('the file /x is missing');
      return text;
    });
    assert.equal(await attempt(''), 'closed');
    text = 'pw';
    assert.equal(await attempt('pw'), 'closed');
    await clock.advance(5_000);
    assert.equal(await attempt('pw'), 'open');
    text = 'other';
    await clock.advance(5_000);
    assert.equal(await attempt('pw'), 'unauthorized');
    text = '';
    await clock.advance(5_000);
    assert.equal(await attempt('', '10.0.0.9'), 'closed');
  });

  it('does not take the text of a hash as the password', async () => {
    const hash = await makeHash('pw');
    const { attempt } = createTestDoor(hash);
    assert.equal(await attempt(hash), 'unauthorized');
    assert.equal(await attempt('pw', '10.0.0.2'), 'open');
  });
});

describe('the throttle', () => {
  it('remembers a bounded number of addresses', () => {
    const clock = createManualClock();
    const throttle = createThrottle(clock);
    for (let index = 0; index < 10_000; index += 1) throttle.failed(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
    assert.ok(throttle.size <= 2_000, String(throttle.size));
  });

  it('forgets after a while', async () => {
    const clock = createManualClock();
    const throttle = createThrottle(clock);
    assert.deepEqual([throttle.failed('a'), throttle.failed('a')], [1, 2]);
    await clock.advance(20 * 60_000);
    assert.equal(throttle.failed('a'), 1);
  });

  it('takes the many addresses of one client for one', () => {
    assert.equal(clientKey('::ffff:10.0.0.1'), '10.0.0.1');
    assert.equal(clientKey('10.0.0.1'), '10.0.0.1');
    assert.equal(clientKey('2001:db8:1:2:3:4:5:6'), clientKey('2001:DB8:1:2::1'));
    assert.notEqual(clientKey('2001:db8:1:2::1'), clientKey('2001:db8:1:3::1'));
    assert.equal(clientKey('fe80::1%eth0'), 'fe80:0:0:0::/64');
    assert.equal(clientKey('::1'), '0:0:0:0::/64');
  });
});

describe('credentials', () => {
  it('are read as UTF-8, else as Latin-1, and split at the first colon', () => {
    assert.deepEqual(parseCredentials(header('a', 'b:c')), { username: 'a', password: 'b:c' });
    assert.deepEqual(parseCredentials(header('用户', 'é')), { username: '用户', password: 'é' });
    assert.deepEqual(parseCredentials(`basic ${Buffer.from('a:\xe9', 'latin1').toString('base64')}`), { username: 'a', password: 'é' });
    for (const text of [undefined, '', 'Basic', 'Basic a b', 'Bearer YTpi', `Basic ${Buffer.from('ab').toString('base64')}`, `Basic ${'A'.repeat(5_000)}`]) {
      assert.equal(parseCredentials(text), undefined, text);
    }
  });
});

describe('hashes', () => {
  it('match their password alone, in either Unicode form, and differ each time', async () => {
    const text = await makeHash('grüße 词');
    const hash = parseHash(text);
    assert.ok(hash);
    assert.equal(await matchesHash('grüße 词'.normalize('NFD'), hash), true);
    assert.equal(await matchesHash('grüße', hash), false);
    assert.notEqual(await makeHash('grüße 词'), text);
  });

  it('are told from passwords, and from what would take too much memory', () => {
    const [salt, hash] = ['A'.repeat(22), 'A'.repeat(43)];
    assert.ok(parseHash(`scrypt$16384$8$1$${salt}$${hash}`));
    for (const text of ['scrypt', 'scrypt$', `scrypt$16384$8$1$${salt}$short`, `scrypt$16383$8$1$${salt}$${hash}`, `scrypt$67108864$8$1$${salt}$${hash}`, `x scrypt$16384$8$1$${salt}$${hash}`]) {
      assert.equal(parseHash(text), undefined, text);
    }
  });

  it('are derived once for all requests with the same credentials, and a right one once for all time', async () => {
    const verifier = createVerifier('admin', await makeHash('pw'));
    const credentials = { username: 'admin', password: 'pw' };
    assert.equal(verifier.examine(credentials).verdict, 'unknown');
    const all = await Promise.all(Array.from({ length: 100 }, () => verifier.examine(credentials).verify()));
    assert.ok(all.every(Boolean));
    assert.equal(verifier.examine(credentials).verdict, 'right');
    assert.equal(await verifier.examine({ username: 'other', password: 'pw' }).verify(), false);
    assert.equal(verifier.examine({ username: 'other', password: 'pw' }).verdict, 'wrong');
    assert.equal(verifier.examine(credentials).verdict, 'right');
  });

  it('are not derived for more than a few guesses at once', async () => {
    const verifier = createVerifier('admin', await makeHash('pw'));
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => verifier.examine({ username: 'admin', password: `guess ${index}` }).verify()));
    assert.equal(results.filter((result) => result.status === 'rejected').length, 4);
  });
});

describe('exposure', () => {
  const web = { port: 1, hostnames: [], username: 'admin' };

  it('is everything but loopback without a password', () => {
    for (const listen of ['0.0.0.0', '::', '192.168.1.2', 'fe80::1', 'nas.lan', '[::]']) {
      assert.match(exposureOf({ ...web, listen, password: '' }, false)?.notice.message ?? '', /web\.password/, listen);
      assert.equal(exposureOf({ ...web, listen, password: { env: 'X' } }, true), undefined);
    }
    for (const listen of ['127.0.0.1', '127.1.2.3', '::1', '[::1]', 'localhost']) assert.equal(exposureOf({ ...web, listen, password: '' }, false), undefined, listen);
  });

  it('is loopback, too, where the daemon is root', () => {
    const found = exposureOf({ ...web, listen: '127.0.0.1', password: '' }, true);
    assert.match(found?.line ?? '', /every local user may change the configuration/);
    assert.deepEqual([found?.notice.level, passwordCheck({ ...web, listen: '127.0.0.1', password: '' }, true).result], ['warning', 'warning']);
    assert.match(found?.notice.message ?? '', /runs as root: every local user of this machine may change its configuration.*Set web\.password; the command line of root does not need it/);
    assert.deepEqual([exposureOf({ ...web, listen: '127.0.0.1', password: 'x' }, true), passwordCheck({ ...web, listen: '::1', password: 'x' }, true).result], [undefined, 'ok']);
  });
});
