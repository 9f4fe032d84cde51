/** Sign-ins in memory: how long they last, how many there are, and what is kept of them. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { inspect } from 'node:util';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../core/testing/manual-clock.ts';
import { ofUser } from '../../../plugins/auth/principals.ts';
import { sentCookie, cookieIn } from '../../../plugins/auth/sign-ins/cookie.ts';
import { IDLE_MS, LASTS_MS, SignIns } from '../../../plugins/auth/sign-ins/sign-ins.ts';

describe('sign-ins', () => {
  let clock: ManualClock;
  let signIns: SignIns;
  beforeEach(() => {
    clock = createManualClock();
    signIns = new SignIns(() => clock);
  });
  const begin = (name: string): string => {
    const admitted = ofUser({ name, password_hash: 'x', role: 'operator' });
    return signIns.begin({ admitted, address: '10.0.0.1', browser: 'Lynx' });
  };

  it('are 256 random bits each, of which nothing but a hash is kept', () => {
    const [one, two] = [begin('ada'), begin('ada')];
    assert.notEqual(one, two);
    assert.equal(Buffer.from(one, 'base64url').length, 32);
    assert.equal(cookieIn(`a=b; mountkeeper_sign_in=${one}; c=d`), one);
    assert.doesNotMatch(inspect(signIns.list(), { depth: 9 }), new RegExp(one.slice(0, 8)));
    const { id } = signIns.list()[0] ?? assert.fail('there is none');
    assert.equal(signIns.use(id), undefined);
  });

  it('end when they are not used, and after a while in any case', async () => {
    const [idle, used] = [begin('ada'), begin('bob')];
    for (let passed = 0; passed + IDLE_MS / 2 < LASTS_MS; passed += IDLE_MS / 2) {
      assert.equal(signIns.use(used)?.principal.name, 'bob');
      await clock.advance(IDLE_MS / 2);
    }
    assert.equal(signIns.use(idle), undefined);
    assert.equal(signIns.use(used)?.principal.role, 'operator');
    await clock.advance(IDLE_MS / 2);
    assert.equal(signIns.use(used), undefined);
    assert.deepEqual(signIns.list(), []);
  });

  it('make way for new ones of the same name alone, those first that were not used for longest', async () => {
    const other = begin('bob');
    const all: string[] = [];
    for (let count = 0; count < 50; count += 1) {
      all.push(begin('ada'));
      await clock.advance(1);
    }
    assert.ok(signIns.use(all[0] ?? ''));
    begin('ada');
    assert.ok(signIns.use(all[0] ?? '') && signIns.use(other));
    assert.equal(signIns.use(all[1] ?? ''), undefined);
  });

  it('take no cookie for theirs that is of another form', () => {
    assert.equal(cookieIn(undefined), undefined);
    assert.equal(cookieIn('other=1'), undefined);
    assert.equal(cookieIn('mountkeeper_sign_in=x'), '');
    assert.equal(cookieIn(`xmountkeeper_sign_in=${begin('ada')}`), undefined);
  });

  it('over TLS, take no cookie that another host of the domain could have set', () => {
    const [own, planted] = [begin('ada'), begin('eve')];
    const sent = (cookie: string, socket: Socket): string | undefined =>
      sentCookie({ headers: { cookie }, socket } as IncomingMessage);
    const [plain, secure] = [new Socket(), new TLSSocket(new Socket())];
    assert.equal(sent(`mountkeeper_sign_in=${planted}`, secure), undefined);
    assert.equal(sent(`mountkeeper_sign_in=${planted}; __Host-mountkeeper_sign_in=${own}`, secure), own);
    assert.equal(sent(`mountkeeper_sign_in=${own}`, plain), own);
    secure.destroy();
    plain.destroy();
  });
});
