import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { watchPlugins } from '../../../../core/plugins/discovery/watch.js';
import { createClock } from '../../../../core/platform/clock.js';
import { createManualClock } from '../../../../core/testing/manual-clock.js';
import { until } from '../../../support/platform/wait.ts';

describe('watching plugin folders', () => {
  it('notices edits however deep, plugins that come and plugins that go; not what lies in node_modules', async (t) => {
    const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-watch-'));
    const at = (...parts: string[]) => path.join(root, ...parts);
    await mkdir(at('garden/deep/er'), { recursive: true });
    await mkdir(at('garden/node_modules/x'), { recursive: true });
    await writeFile(at('garden/deep/er/a.js'), '1');
    let changes = 0;
    let heard: () => void = () => undefined;
    const release = await watchPlugins({
      dirs: [root],
      debounceMs: 100,
      clock: createClock(),
      log: pino({ level: 'silent' }),
      onChange: () => {
        changes += 1;
        heard();
      },
    });
    t.after(async () => {
      await release();
      await rm(root, { recursive: true, force: true });
    });
    const after = async (act: () => Promise<unknown>) => {
      const next = new Promise<void>((resolve) => {
        heard = resolve;
      });
      await act();
      await next;
    };
    await after(() => writeFile(at('garden/deep/er/a.js'), '2'));
    await after(async () => {
      await writeFile(at('garden/deep/er/b'), '3');
      await rename(at('garden/deep/er/b'), at('garden/deep/er/a.js'));
    });
    await after(() => mkdir(at('pond')));
    await after(() => rm(at('pond'), { recursive: true }));
    // A save may be told twice where its two steps are far apart.
    for (let seen = -1; seen !== changes;) {
      seen = changes;
      await sleep(500);
    }
    const before = changes;
    await writeFile(at('garden/node_modules/x/index.js'), '1');
    await after(() => writeFile(at('garden/package.json'), '{}'));
    assert.equal(changes, before + 1);
  });

  it('notices packages that come and change beside an unchanged package.json', async (t) => {
    const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-watch-'));
    const at = (...parts: string[]) => path.join(root, ...parts);
    await mkdir(at('garden'));
    await writeFile(at('garden/package.json'), '{}');
    let changes = 0;
    const release = await watchPlugins({
      dirs: [root],
      debounceMs: 100,
      clock: createClock(),
      log: pino({ level: 'silent' }),
      onChange: () => void (changes += 1),
    });
    t.after(async () => {
      await release();
      await rm(root, { recursive: true, force: true });
    });
    /** Once nothing more comes. */
    const inAll = async (): Promise<number> => {
      for (let seen = -1; seen !== changes;) {
        seen = changes;
        await sleep(1_000);
      }
      return changes;
    };
    const isTold = async (what: string, act: () => Promise<unknown>): Promise<void> => {
      const before = await inAll();
      await act();
      await until(what, () => changes > before, { timeoutMs: 20_000 });
    };
    await isTold('the folder', () => mkdir(at('garden/node_modules/x'), { recursive: true }));
    const list = at('garden/node_modules/.package-lock.json');
    await isTold('the list', () => writeFile(list, '{}'));
    await isTold('another list', () => writeFile(list, '{ }'));
    const before = await inAll();
    // What a package has for itself.
    await mkdir(at('garden/node_modules/x/node_modules'));
    await writeFile(at('garden/node_modules/x/node_modules/.package-lock.json'), '{}');
    assert.equal(await inAll(), before);
  });

  it('tells of what has changed since the folders were read, before it was there', async (t) => {
    const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-watch-'));
    t.after(() => rm(root, { recursive: true, force: true }));
    const file = path.join(root, 'garden/index.js');
    await mkdir(path.dirname(file));
    await writeFile(file, 'word');
    const { ctimeMs } = await stat(file);
    for (const [readAtMs, isTold] of [
      [ctimeMs, true],
      [ctimeMs + 1_000, false],
      [undefined, false],
    ] as const) {
      const clock = createManualClock();
      let changes = 0;
      const release = await watchPlugins({
        dirs: [root],
        readAtMs,
        clock,
        log: pino({ level: 'silent' }),
        onChange: () => void (changes += 1),
      });
      await clock.advance(500);
      await release();
      assert.equal(changes > 0, isTold, `${readAtMs}`);
    }
  });

  it('notices a folder that is moved to the place of one, and what is changed in it; also without quiet', async (t) => {
    const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-watch-'));
    const at = (...parts: string[]) => path.join(root, ...parts);
    for (const folder of ['plugins/garden', 'next']) {
      await mkdir(at(folder), { recursive: true });
      await writeFile(at(folder, 'index.js'), folder);
    }
    let heard: () => void = () => undefined;
    const release = await watchPlugins({
      dirs: [at('plugins')],
      debounceMs: 200,
      clock: createClock(),
      log: pino({ level: 'silent' }),
      onChange: () => heard(),
    });
    t.after(async () => {
      await release();
      await rm(root, { recursive: true, force: true });
    });
    const change = () =>
      new Promise<void>((resolve) => {
        heard = resolve;
      });
    const moved = change();
    await rename(at('plugins/garden'), at('former'));
    await rename(at('next'), at('plugins/garden'));
    await moved;
    const changed = change();
    await writeFile(at('plugins/garden/index.js'), 'in place');
    await changed;
    // One more may be told of the same save.
    await sleep(1_000);
    let isHeard = false;
    void change().then(() => {
      isHeard = true;
    });
    for (let word = 0; !isHeard && word < 300; word += 1) {
      await writeFile(at('plugins/garden/index.js'), `${word}`);
      await sleep(20);
    }
    assert.ok(isHeard, 'nothing was told while somebody wrote without end');
  });
});
