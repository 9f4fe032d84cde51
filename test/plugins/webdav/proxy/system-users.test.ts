/** Users of the machine, as the proxy asks about them: with a fake daemon that fetches and answers. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../../core/testing/manual-clock.ts';
import type { SystemQuestion } from '../../../../plugins/webdav/proxy/state.ts';
import { SystemUsers } from '../../../../plugins/webdav/proxy/system-users.ts';
import { Unavailable } from '../../../../plugins/webdav/proxy/upstream.ts';
import { basic, ProxyFixture } from '../../../support/webdav/fake-backend.ts';

const never = new AbortController().signal;

async function settled<T>(promise: Promise<T>): Promise<T | 'waiting'> {
  await new Promise((resolve) => setImmediate(resolve));
  return Promise.race([promise, Promise.resolve('waiting' as const)]);
}

describe('what the proxy asks about users of the machine', () => {
  let clock: ManualClock;
  let users: SystemUsers;
  const ask = (username: string, password = 'p'): Promise<boolean> =>
    users.isRight({ username, password }, `${username}:${password}`);
  const one = async (): Promise<SystemQuestion> => {
    const [question] = await users.fetch(never);
    assert.ok(question);
    return question;
  };

  beforeEach(() => {
    clock = createManualClock();
    users = new SystemUsers(clock);
    users.admitOnly(['nora', 'otto']);
  });

  it('is asked once by many at once, and believed for half a minute', async () => {
    const asking = Promise.all([ask('nora'), ask('nora')]);
    const { id, ...question } = await one();
    assert.deepEqual(question, { name: 'nora', password: 'p', wasRight: false });
    users.answer(id, true);
    assert.deepEqual(await asking, [true, true]);
    await clock.advance(29_000);
    assert.equal(await settled(ask('nora')), true);
    await clock.advance(1_000);
    const again = ask('nora');
    const { id: second, wasRight } = await one();
    assert.equal(wasRight, true);
    users.answer(second, false);
    assert.equal(await again, false);
  });

  it('is the same about who is no member, and never believed of such a one', async () => {
    for (const isRight of [false, true]) {
      const asking = ask('root', String(isRight));
      const { id, name } = await one();
      assert.equal(name, 'root');
      users.answer(id, isRight);
      assert.equal(await asking, false);
    }
    const unknown = assert.rejects(ask('nobody-here'), Unavailable);
    users.answer((await one()).id, null);
    await unknown;
  });

  it('is nothing about who stands in the configuration, and no password that PAM does not take', async () => {
    users.admitOnly(['nora', 'otto'], new Set(['alice']));
    for (const [name, password] of [
      ['alice', 'p'],
      ['nora', ''],
      ['nora', 'p\notto\np'],
      ['nora', 'p\0'],
      ['nora', 'p'.repeat(512)],
    ] as const)
      assert.equal(await settled(ask(name, password)), false, JSON.stringify([name, password]));
    users.admitOnly([]);
    assert.equal(await settled(ask('nora')), false);
  });

  it('counts for nothing once another list is told', async () => {
    const asking = ask('nora');
    const { id } = await one();
    users.admitOnly(['nora']);
    const again = ask('nora');
    assert.notEqual((await one()).id, id, 'it is asked anew');
    users.answer(id, true);
    await asking;
    assert.equal(await settled(again), 'waiting');
  });

  it('lets nobody in who is no member any more when the answer comes', async () => {
    const asking = ask('nora');
    const { id } = await one();
    users.admitOnly(['otto']);
    users.answer(id, true);
    assert.equal(await asking, false);
  });

  it('is neither right nor wrong while nobody answers, or where the daemon could not find out', async () => {
    const late = assert.rejects(ask('nora'), Unavailable);
    await clock.advance(15_000);
    await late;
    const unknown = assert.rejects(ask('otto'), Unavailable);
    users.answer((await one()).id, null);
    await unknown;
  });

  it('is bounded, and hands each question over once', async () => {
    users.admitOnly(['nora']);
    const asking = Array.from({ length: 65 }, (_, index) => ask('nora', `p${index}`));
    await assert.rejects(asking[64] ?? Promise.resolve(), Unavailable);
    const questions = await users.fetch(never);
    assert.equal(questions.length, 64);
    assert.equal(await settled(users.fetch(never)), 'waiting');
    for (const { id } of questions) users.answer(id, false);
    assert.deepEqual(new Set(await Promise.all(asking.slice(0, 64))), new Set([false]));
    const again = ask('nora', 'p64');
    users.answer((await one()).id, true);
    assert.equal(await again, true, 'who found no place is asked about the next time');
  });

  it('keeps no place from those who were right before, however many guess', async () => {
    const first = ask('otto');
    users.answer((await one()).id, true);
    await first;
    await clock.advance(30_000);
    const guesses = Array.from({ length: 64 }, (_, index) => ask('nora', `p${index}`));
    const again = ask('otto');
    const questions = await users.fetch(never);
    for (const { id, wasRight } of questions) users.answer(id, wasRight);
    assert.equal(await again, true);
    assert.deepEqual(new Set(await Promise.all(guesses)), new Set([false]));
  });

  it('waits for a daemon that has left without having answered it', async () => {
    const gone = new AbortController();
    const left = users.fetch(gone.signal);
    gone.abort();
    assert.deepEqual(await left, []);
    const asking = ask('nora');
    users.answer((await one()).id, true);
    assert.equal(await asking, true);
    const idle = users.fetch(never);
    await clock.advance(20_000);
    assert.deepEqual(await idle, []);
  });
});

describe('users of the machine over WebDAV', () => {
  let fixture: ProxyFixture;
  const as = async (user: string, password: string): Promise<number> => {
    const headers = { authorization: basic(user, password) };
    return (await fixture.ask('GET', '/team/a', { headers })).status;
  };
  const answered = async (work: Promise<number>, isRight: boolean | null): Promise<number> => {
    const { system } = fixture.proxy.authenticator;
    for (const { id } of await system.fetch(never)) system.answer(id, isRight);
    return work;
  };

  beforeEach(async () => {
    fixture = await ProxyFixture.open();
    fixture.backend.files.set('/team/a', Buffer.from('a'));
    await fixture.tell({
      systemUsers: ['nora', 'alice'],
      access: { team: { write: ['nora', 'alice'], read: [] } },
    });
  });
  afterEach(() => fixture.close());

  it('come in when the daemon says so, and are out when they are no members any more', async () => {
    assert.equal(await answered(as('nora', 'p'), true), 200);
    assert.equal(await as('nora', 'p'), 200);
    await fixture.tell({ systemUsers: [] });
    assert.equal(await as('nora', 'p'), 401);
  });

  it('are told to come again where nobody can say, as everybody is whom the configuration does not name', async () => {
    assert.equal(await answered(as('nora', 'p'), null), 503);
    assert.equal(await answered(as('nobody-here', 'p'), null), 503);
    assert.equal(await answered(as('nora', 'p'), true), 200);
  });

  it('stay while a daemon that takes over cannot read their group yet, and none of another group', async () => {
    await fixture.tell({ systemGroup: 'people' });
    assert.equal(await answered(as('nora', 'p'), true), 200);
    await fixture.tell({ systemUsers: undefined });
    assert.equal(await as('nora', 'p'), 200);
    await fixture.tell({ systemGroup: 'others' });
    assert.equal(await as('nora', 'p'), 401);
  });

  it('have no second password beside the one in the configuration', async () => {
    const begun = performance.now();
    assert.equal(await as('alice', 'p'), 401);
    // As late as one that PAM was asked about.
    assert.ok(performance.now() - begun >= 3_400);
    assert.equal(await as('alice', 'wonder:land'), 200);
  });
});
