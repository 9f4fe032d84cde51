import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { until } from '../support/platform/wait.ts';
import { LoadSlots } from './load-slots.ts';

interface Asker {
  readonly socket: Socket;
  mayGo: boolean;
}

async function house(t: TestContext, isCrowded = () => false): Promise<(name: string) => Promise<Asker>> {
  const dir = await mkdtemp(join(tmpdir(), 'mk-turns-'));
  const slots = await LoadSlots.open(join(dir, 's'), {
    limit: 2,
    load: (name) => ({ lonely: 2, quiet: 0.5 })[name] ?? 1,
    isCrowded,
  });
  t.after(async () => {
    await slots.close();
    await rm(dir, { recursive: true });
  });
  return async (name) => {
    const asker: Asker = { socket: connect(join(dir, 's')), mayGo: false };
    asker.socket.on('data', () => (asker.mayGo = true));
    await once(asker.socket, 'connect');
    asker.socket.write(`${name}\n`);
    return asker;
  };
}

const goes = (asker: Asker): Promise<unknown> => until('it goes', () => asker.mayGo, { timeoutMs: 20_000 });

describe('turns of test files', () => {
  it('lets files run beside each other, and one that must be alone when all of them have ended', async (t) => {
    const ask = await house(t);
    const [a, b] = [await ask('a'), await ask('b')];
    await Promise.all([goes(a), goes(b)]);
    const lonely = await ask('lonely');
    a.socket.destroy();
    await once(a.socket, 'close');
    const last = await ask('c');
    // Whoever comes later has been heard by the time an answer to it could have come.
    b.socket.write('still here\n');
    assert.equal(lonely.mayGo || last.mayGo, false);
    b.socket.destroy();
    await goes(lonely);
    assert.equal(last.mayGo, false);
    lonely.socket.destroy();
    await goes(last);
    last.socket.destroy();
  });

  it('lets half of it run where the machine is crowded, one of any load, the rest when it is not', async (t) => {
    let [isCrowded, looks] = [true, 0];
    const ask = await house(t, () => {
      looks += 1;
      return isCrowded;
    });
    const [a, b] = [await ask('lonely'), await ask('b')];
    await goes(a);
    a.socket.destroy();
    await goes(b);
    const [c, before] = [await ask('c'), looks];
    await until('the machine was looked at for it', () => looks >= before + 3, { timeoutMs: 20_000 });
    assert.equal(c.mayGo, false);
    isCrowded = false;
    await goes(c);
    for (const { socket } of [b, c]) socket.destroy();
  });

  it('lets no more run than the limit carries, and two quiet ones where one other would', async (t) => {
    const ask = await house(t);
    const [a, b, c] = [await ask('a'), await ask('quiet'), await ask('quiet')];
    await Promise.all([goes(a), goes(b), goes(c)]);
    const [next, after] = [await ask('d'), await ask('quiet')];
    b.socket.destroy();
    await once(b.socket, 'close');
    assert.equal(next.mayGo || after.mayGo, false);
    c.socket.destroy();
    await goes(next);
    assert.equal(after.mayGo, false, 'the limit is reached again');
    a.socket.destroy();
    await goes(after);
    for (const { socket } of [next, after]) socket.destroy();
  });
});
