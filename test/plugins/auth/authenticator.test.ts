import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import pino from 'pino';
import type { Secret } from '../../../core/contract/config.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { createAuthenticator } from '../../../plugins/auth/authenticator.ts';
import { makeHash, matchesHash, parseHash } from '../../../plugins/auth/password-hash.ts';
import { passwordCheck } from '../../../plugins/auth/doctor.ts';
import { exposureOf } from '../../../plugins/auth/exposure.ts';
import { SignIns } from '../../../plugins/auth/sign-ins/sign-ins.ts';
import { Codes } from '../../../plugins/auth/totp/codes.ts';
import { SecondFactor } from '../../../plugins/auth/totp/second-factor.ts';
import { codeOf, stepAt, toBase32 } from '../../../plugins/auth/totp/totp.ts';
import { createVerifier } from '../../../plugins/auth/verifier.ts';

const log = pino({ level: 'silent' });

function header(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function createTestDoor(password: Secret, resolve: (secret: Secret) => string = String) {
  const clock = createManualClock();
  const config = { username: 'admin', password, totp_secret: '', users: [], tokens: [] };
  const secrets = () => ({ resolve });
  const stop = new AbortController();
  const door = createAuthenticator({
    config: () => config,
    secrets,
    clock: () => clock,
    log,
    signal: stop.signal,
    signIns: new SignIns(() => clock),
    secondFactor: new SecondFactor({ codes: new Codes({ clock: () => clock, log }), log, secrets }),
  });
  const attempt = async (text: string, address = '10.0.0.1', name = 'admin', code?: string) => {
    const gone = () => new AbortController().signal;
    const authorization = header(name, text);
    const given = { authorization, cookie: undefined, address, gone, ...(code !== undefined && { code }) };
    return (await door.decide(given)).decision;
  };
  return { clock, config, stop, attempt };
}

/** Gives how many hashes of passwords were derived since. */
function countDerivations(t: TestContext): () => number {
  const real = crypto.scrypt;
  let derived = 0;
  t.mock.method(crypto, 'scrypt', (...given: Parameters<typeof real>) => {
    derived += 1;
    return real(...given);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return () => derived;
}

/** The decision if there is one by now. */
async function settled<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve('waiting' as const)]);
}

describe('the door', () => {
  it('lets the right password in at once where it was right before, however many guess from there', async () => {
    const { clock, attempt } = createTestDoor('pw');
    assert.equal(await attempt('pw'), 'known');
    const guesses = Array.from({ length: 20 }, (_, index) => attempt(`guess ${index}`));
    for (let count = 0; count < 12; count += 1) assert.equal(await attempt('pw'), 'known');
    assert.equal(await settled(guesses[19] as Promise<unknown>), 'waiting');
    await clock.advance(60_000);
    const decisions = await Promise.all(guesses);
    assert.ok(
      decisions.every((decision) => decision === 'unauthorized'),
      decisions.join(' '),
    );
  });

  it('does not take a password that was changed while others were before it', async () => {
    const { clock, config, attempt } = createTestDoor('pw');
    const guesses = Array.from({ length: 20 }, (_, index) => attempt(`guess ${index}`));
    const former = attempt('pw');
    assert.equal(await settled(former), 'waiting');
    config.password = 'another';
    await clock.advance(60_000);
    assert.equal(await former, 'unauthorized');
    await Promise.all(guesses);
    assert.equal(await attempt('another', '10.0.0.2'), 'known');
  });

  it('keeps no client waiting once it is stopped', async () => {
    const { attempt, stop } = createTestDoor('pw');
    const guesses = Array.from({ length: 20 }, (_, index) => attempt(`guess ${index}`));
    assert.equal(await settled(guesses[5] as Promise<unknown>), 'waiting');
    stop.abort();
    assert.deepEqual([...new Set(await Promise.all(guesses))], ['unauthorized', 'too-many']);
    assert.equal(await attempt('pw'), 'too-many');
  });

  it('answers the same wrong password again without a pause', async () => {
    const { attempt } = createTestDoor('pw');
    for (let count = 0; count < 50; count += 1) assert.equal(await attempt('stale'), 'unauthorized');
  });

  it('takes the same time for a wrong password, whoever has the name, and whether anybody has it', async (t) => {
    const derivations = countDerivations(t);
    const hash = await makeHash('her word');
    for (const password of ['pw', await makeHash('pw')]) {
      const { config, attempt } = createTestDoor(password);
      Object.assign(config, { users: [{ name: 'anna', password_hash: hash, role: 'viewer' }] });
      const counts: number[] = [];
      for (const name of ['admin', 'anna', 'nobody']) {
        const before = derivations();
        assert.equal(await attempt('wrong', '10.0.0.1', name), 'unauthorized');
        counts.push(derivations() - before);
      }
      assert.deepEqual(counts, [1, 1, 1]);
      assert.equal(await attempt('pw'), 'known');
    }
  });

  it('takes the same time for a wrong code, whether the password was right or not, and remembers none', async (t) => {
    const derivations = countDerivations(t);
    const secret = toBase32(Buffer.alloc(20, 'ada'));
    const hash = await makeHash('pw');
    const anna = { name: 'anna', password_hash: hash, role: 'viewer' };
    for (const [password, name, config] of [
      ['other', 'anna', { users: [{ ...anna, totp_secret: secret }] }],
      [hash, 'admin', { totp_secret: secret }],
      ['pw', 'admin', { totp_secret: secret, users: [anna] }],
    ] as const) {
      const { attempt, clock, config: own } = createTestDoor(password);
      Object.assign(own, config);
      const code = codeOf(Buffer.alloc(20, 'ada'), stepAt(clock.now()));
      const wrong = code === '000000' ? '111111' : '000000';
      assert.equal(await attempt('pw', '10.0.0.1', name, code), 'known');
      const counts: number[] = [];
      for (const text of ['pw', 'wrong', 'pw']) {
        const before = derivations();
        assert.equal(await attempt(text, '10.0.0.1', name, wrong), 'unauthorized');
        counts.push(derivations() - before);
      }
      assert.deepEqual(counts, [1, 1, 1], name);
    }
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
    assert.equal(await attempt('pw'), 'known');
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
    assert.equal(await attempt('pw', '10.0.0.2'), 'known');
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
    for (const text of [
      'scrypt',
      'scrypt$',
      `scrypt$16384$8$1$${salt}$short`,
      `scrypt$16383$8$1$${salt}$${hash}`,
      `scrypt$67108864$8$1$${salt}$${hash}`,
      `x scrypt$16384$8$1$${salt}$${hash}`,
    ]) {
      assert.equal(parseHash(text), undefined, text);
    }
  });

  it('are derived once for all requests with the same credentials, and a right one once for all time', async () => {
    const verifier = createVerifier('admin', await makeHash('pw'));
    const credentials = { username: 'admin', password: 'pw' };
    const started = performance.now();
    assert.equal(await verifier.examine(credentials).verify(), true);
    const once = performance.now() - started;
    const all = await Promise.all(Array.from({ length: 100 }, () => verifier.examine(credentials).verify()));
    assert.ok(all.every(Boolean));
    assert.ok(performance.now() - started < 50 * once, 'a hundred would take a hundred times as long');
    assert.equal(await verifier.examine({ username: 'other', password: 'pw' }).verify(), false);
    assert.equal(await verifier.examine(credentials).verify(), true);
  });

  it('are told apart by where the name ends and the password begins', async () => {
    for (const password of ['minpw', await makeHash('minpw')]) {
      const verifier = createVerifier('ad', password);
      assert.equal(await verifier.examine({ username: 'ad', password: 'minpw' }).verify(), true);
      for (const username of ['', 'a', 'adm', 'admin', 'adminpw']) {
        const other = verifier.examine({ username, password: 'adminpw'.slice(username.length) });
        assert.equal(await other.verify(), false, username);
        assert.notEqual(other.id, verifier.examine({ username: 'ad', password: 'minpw' }).id);
      }
    }
  });

  it('are not derived for more than a few guesses at once', async () => {
    const verifier = createVerifier('admin', await makeHash('pw'));
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) =>
        verifier.examine({ username: 'admin', password: `guess ${index}` }).verify(),
      ),
    );
    assert.equal(results.filter((result) => result.status === 'rejected').length, 4);
  });
});

describe('exposure', () => {
  const web = {
    port: 1,
    hostnames: [],
    trusted_proxies: [],
    plain_http: false,
    username: 'admin',
    totp_secret: '',
    users: [],
    tokens: [],
  };

  it('is everything but loopback without a password', () => {
    for (const listen of ['0.0.0.0', '::', '192.168.1.2', 'fe80::1', 'nas.lan', '[::]']) {
      assert.match(
        exposureOf({ ...web, listen, password: '' }, false)?.notice.message ?? '',
        /web\.password/,
        listen,
      );
      assert.equal(exposureOf({ ...web, listen, password: { env: 'X' } }, true), undefined);
    }
    for (const listen of ['127.0.0.1', '127.1.2.3', '::1', '[::1]', 'localhost'])
      assert.equal(exposureOf({ ...web, listen, password: '' }, false), undefined, listen);
  });

  it('is loopback, too, where the daemon is root', () => {
    const found = exposureOf({ ...web, listen: '127.0.0.1', password: '' }, true);
    assert.match(found?.line ?? '', /every local user may change the configuration/);
    assert.deepEqual(
      [found?.notice.level, passwordCheck({ ...web, listen: '127.0.0.1', password: '' }, true).result],
      ['warning', 'warning'],
    );
    assert.match(
      found?.notice.message ?? '',
      new RegExp(
        'runs as root: every local user of this machine may change its configuration.*' +
          'Set web\\.password; the command line of root does not need it',
      ),
    );
    assert.deepEqual(
      [
        exposureOf({ ...web, listen: '127.0.0.1', password: 'x' }, true),
        passwordCheck({ ...web, listen: '::1', password: 'x' }, true).result,
      ],
      [undefined, 'ok'],
    );
  });
});
