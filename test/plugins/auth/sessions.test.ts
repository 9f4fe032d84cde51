/** Sessions in memory: how long they last, how many there are, and what is kept of them. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { inspect } from 'node:util';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../core/testing/manual-clock.ts';
import { ofUser } from '../../../plugins/auth/principals.ts';
import { sentCookie, sessionCookie } from '../../../plugins/auth/sessions/cookie.ts';
import { IDLE_MS, LASTS_MS, Sessions } from '../../../plugins/auth/sessions/sessions.ts';

describe('sessions', () => {
  let clock: ManualClock;
  let sessions: Sessions;
  beforeEach(() => {
    clock = createManualClock();
    sessions = new Sessions(() => clock);
  });
  const begin = (name: string): string => {
    const admitted = ofUser({ name, password_hash: 'x', role: 'operator' });
    return sessions.begin({ admitted, address: '10.0.0.1', browser: 'Lynx' });
  };

  it('are 256 random bits each, of which nothing but a hash is kept', () => {
    const [one, two] = [begin('ada'), begin('ada')];
    assert.notEqual(one, two);
    assert.equal(Buffer.from(one, 'base64url').length, 32);
    assert.equal(sessionCookie(`a=b; mountkeeper_session=${one}; c=d`), one);
    assert.doesNotMatch(inspect(sessions.list(), { depth: 9 }), new RegExp(one.slice(0, 8)));
    const { id } = sessions.list()[0] ?? assert.fail('there is none');
    assert.equal(sessions.use(id), undefined);
  });

  it('end when they are not used, and after a while in any case', async () => {
    const [idle, used] = [begin('ada'), begin('bob')];
    for (let passed = 0; passed + IDLE_MS / 2 < LASTS_MS; passed += IDLE_MS / 2) {
      assert.equal(sessions.use(used)?.principal.name, 'bob');
      await clock.advance(IDLE_MS / 2);
    }
    assert.equal(sessions.use(idle), undefined);
    assert.equal(sessions.use(used)?.principal.role, 'operator');
    await clock.advance(IDLE_MS / 2);
    assert.equal(sessions.use(used), undefined);
    assert.deepEqual(sessions.list(), []);
  });

  it('make way for new ones of the same name alone, those first that were not used for longest', async () => {
    const other = begin('bob');
    const all: string[] = [];
    for (let count = 0; count < 50; count += 1) {
      all.push(begin('ada'));
      await clock.advance(1);
    }
    assert.ok(sessions.use(all[0] ?? ''));
    begin('ada');
    assert.ok(sessions.use(all[0] ?? '') && sessions.use(other));
    assert.equal(sessions.use(all[1] ?? ''), undefined);
  });

  it('take no cookie for theirs that is of another form', () => {
    assert.equal(sessionCookie(undefined), undefined);
    assert.equal(sessionCookie('other=1'), undefined);
    assert.equal(sessionCookie('mountkeeper_session=x'), '');
    assert.equal(sessionCookie(`xmountkeeper_session=${begin('ada')}`), undefined);
  });

  it('over TLS, take no cookie that another host of the domain could have set', () => {
    const [own, planted] = [begin('ada'), begin('eve')];
    const sent = (cookie: string, socket: Socket): string | undefined =>
      sentCookie({ headers: { cookie }, socket } as IncomingMessage);
    const [plain, secure] = [new Socket(), new TLSSocket(new Socket())];
    assert.equal(sent(`mountkeeper_session=${planted}`, secure), undefined);
    assert.equal(sent(`mountkeeper_session=${planted}; __Host-mountkeeper_session=${own}`, secure), own);
    assert.equal(sent(`mountkeeper_session=${own}`, plain), own);
    secure.destroy();
    plain.destroy();
  });
});
