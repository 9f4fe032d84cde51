import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { lockStateDir } from '../../../core/platform/state-lock.js';
import { unlessRoot } from '../../runner/skips.ts';

async function folder(t: TestContext, ...below: readonly string[]): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'mountkeeper-lock-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const dir = join(root, ...below);
  await mkdir(dir, { recursive: true });
  return dir;
}

/** What a daemon that was killed leaves: a socket that nobody listens on. */
async function leaveStaleSocket(dir: string): Promise<void> {
  const script = "require('node:net').createServer().listen('daemon.sock', () => process.stdout.write('up'))";
  const child = spawn(process.execPath, ['-e', script], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.ok(existsSync(join(dir, 'daemon.sock')));
}

describe('lock of the state folder', () => {
  it('is held by one daemon until it lets go, and leaves nothing behind', async (t) => {
    const dir = await folder(t);
    const unlock = await lockStateDir(dir);
    await assert.rejects(lockStateDir(dir), /another mountkeeper daemon is running on the state folder/);
    await unlock();
    assert.equal(existsSync(join(dir, 'daemon.sock')), false);
    await (
      await lockStateDir(dir)
    )();
  });

  it('takes over from a daemon that was killed', async (t) => {
    const dir = await folder(t);
    await leaveStaleSocket(dir);
    const unlock = await lockStateDir(dir);
    await assert.rejects(lockStateDir(dir), /another mountkeeper daemon/);
    await unlock();
  });

  it('is won by exactly one of many that take over at once', async (t) => {
    const dir = await folder(t);
    await leaveStaleSocket(dir);
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => lockStateDir(dir)));
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    assert.equal(won.length, 1);
    await won[0]?.value();
  });

  it('tells folders apart whose names differ only at the far end', async (t) => {
    const [one, other] = [await folder(t, 'x'.repeat(120), 'a'), await folder(t, 'x'.repeat(120), 'b')];
    const unlocks = [await lockStateDir(one), await lockStateDir(other)];
    assert.ok(existsSync(join(one, 'daemon.sock')) && existsSync(join(other, 'daemon.sock')));
    await assert.rejects(lockStateDir(one), /another mountkeeper daemon/);
    for (const unlock of unlocks) await unlock();
  });

  it('takes over from a file that is no socket', async (t) => {
    const dir = await folder(t);
    await writeFile(join(dir, 'daemon.sock'), '');
    await (
      await lockStateDir(dir)
    )();
  });

  it(
    'is not held up by another user, who can neither open the lock nor take a name for it',
    { skip: unlessRoot },
    async (t) => {
      const dir = await folder(t);
      // It can be opened, and so be locked.
      await chmod(dir, 0o755);
      await (
        await lockStateDir(dir)
      )();
      const { dev, ino } = await stat(dir);
      const script = [
        `require('node:net').createServer().listen('\\0mountkeeper/${dev}/${ino}')`,
        `require('node:child_process').spawn('flock', ['${dir}/.mountkeeper.lock', 'sleep', '60'])`,
        `require('node:child_process').spawn('flock', ['${dir}', 'sleep', '60'])`,
        `setTimeout(() => process.stdout.write('up'), 500)`,
      ].join(';');
      const other = spawn(process.execPath, ['-e', script], {
        stdio: ['ignore', 'pipe', 'ignore'],
        uid: 65_534,
        cwd: '/',
        detached: true,
      });
      t.after(() => process.kill(-(other.pid ?? 0), 'SIGKILL'));
      await once(other.stdout, 'data');
      await (
        await lockStateDir(dir)
      )();
    },
  );

  it('is free again once its holder was killed', async (t) => {
    const dir = await folder(t);
    const [lib, hold] = [new URL('../../../core/platform/state-lock.js', import.meta.url), 'holdFolder'];
    const script =
      `const { ${hold} } = await import('${lib.href}');` +
      `const forEver = () => new Promise(() => setInterval(() => process.stdout.write('up'), 50));` +
      `await ${hold}('${dir}', 'mountkeeper', (cause) => cause, forEver)`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    await assert.rejects(lockStateDir(dir), /another mountkeeper daemon/);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await (
      await lockStateDir(dir)
    )();
  });

  it('says what is wrong when there is no such folder', async (t) => {
    await assert.rejects(lockStateDir(join(await folder(t), 'missing')), /ENOENT/);
  });
});
