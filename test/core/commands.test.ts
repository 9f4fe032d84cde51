import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommandChannel } from '../../core/commands.js';
import type { Command } from '../../core/commands.js';
import { never } from '../support/shares/fake-shares.ts';
import { collectLog } from '../support/platform/collected-log.ts';

const turn = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve);
  });

function channel(capacity?: number) {
  const lines = collectLog();
  return {
    lines,
    commands: new CommandChannel({ log: lines.log, ...(capacity === undefined ? {} : { capacity }) }),
  };
}

describe('command channel', () => {
  it('hands commands out in order, one at a time, also those sent before anybody consumed', async () => {
    const { commands } = channel();
    const diary: string[] = [];
    await commands.send('reconnect', 'a');
    await commands.send('reconnect', 'b');
    commands.consume(async ({ args: [share] }: Command) => {
      diary.push(`+${String(share)}`);
      await turn();
      diary.push(`-${String(share)}`);
    });
    await commands.send('reconnect', 'c');
    for (let count = 0; count < 8; count += 1) await turn();
    assert.deepEqual(diary, ['+a', '-a', '+b', '-b', '+c', '-c']);
  });

  it('accepts without waiting for the command to be done', async () => {
    const { commands } = channel();
    commands.consume(never);
    await commands.send('reconnect', 'a');
    await commands.send('reconnect', 'b');
  });

  it('refuses in plain words when it is full', async () => {
    const { commands } = channel(2);
    commands.consume(never);
    for (const share of ['running', 'b', 'c']) await commands.send('reconnect', share);
    await assert.rejects(commands.send('reconnect', 'd'), /2 commands are waiting already/);
  });

  it('takes a configuration though others fill it, and hands it out before them', async () => {
    const { commands } = channel(2);
    const diary: string[] = [];
    let end: () => void = () => undefined;
    commands.consume(async ({ name, args }: Command) => {
      diary.push(`${name} ${String(args[0])}`);
      if (diary.length === 1) await new Promise<void>((resolve) => (end = resolve));
    });
    for (const share of ['running', 'b', 'c']) await commands.send('reconnect', share);
    for (const document of ['first', 'second']) await commands.send('reload', document as never);
    await assert.rejects(commands.send('reload', 'third' as never), /2 commands are waiting already/);
    end();
    for (let count = 0; count < 8; count += 1) await turn();
    assert.deepEqual(diary, [
      'reconnect running',
      'reload first',
      'reload second',
      'reconnect b',
      'reconnect c',
    ]);
  });

  it('goes on after a handler that fails, at once or later', async () => {
    const { commands, lines } = channel();
    const done: unknown[] = [];
    commands.consume(({ args: [share] }) => {
      if (share === 'a') throw new Error('at once');
      if (share === 'b') return Promise.reject(new Error('later'));
      done.push(share);
      return Promise.resolve();
    });
    for (const share of ['a', 'b', 'c']) await commands.send('reconnect', share);
    await turn();
    assert.deepEqual(done, ['c']);
    assert.equal(lines.messages().filter((text) => text === 'command failed').length, 2);
  });

  it('refuses, drops what waits and lets the running one end when it is closed', async () => {
    const { commands, lines } = channel();
    const done: unknown[] = [];
    let release: () => void = () => undefined;
    commands.consume(async ({ args: [share] }) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      done.push(share);
    });
    await commands.send('reconnect', 'a');
    await commands.send('reconnect', 'b');
    const closed = commands.close();
    await assert.rejects(commands.send('reconnect', 'c'), /is stopping/);
    release();
    await closed;
    await turn();
    assert.deepEqual(done, ['a']);
    assert.ok(lines.messages().includes('command dropped, the daemon is stopping'));
  });

  it('does not wait for a command that never ends longer than it may', async () => {
    const { commands } = channel();
    commands.consume(never);
    await commands.send('reconnect', 'a');
    const patience = new AbortController();
    const closed = commands.close(patience.signal);
    patience.abort();
    await closed;
  });
});
