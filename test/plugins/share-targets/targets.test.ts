import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { ShortCommand } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { ShareTargets } from '../../../plugins/share-targets/targets.ts';
import { instanceName, instancesIn, targetOf } from '../../../plugins/share-targets/unit-name.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

/** A systemctl of the test's own: what it was told, and what it says is up. */
async function start(t: TestContext, active: readonly string[] = []) {
  const scratch = await createScratch('targets');
  t.after(() => scratch.close());
  const clock = createManualClock();
  const { log, entries } = collectLog();
  const told: string[] = [];
  /** By what is told; '' stands for everything. */
  const faults = new Map<string, string>();
  let hung = Promise.resolve();
  let atWork = 0;
  const run = async ({ command, args: [verb = '', ...args], timeoutMs }: ShortCommand) => {
    assert.equal(command, 'systemctl');
    assert.ok(timeoutMs <= 20_000);
    assert.equal((atWork += 1), 1, 'one at a time');
    const line = `${verb} ${args.at(-1) ?? ''}`;
    told.push(line);
    await hung.finally(() => (atWork -= 1));
    const stdout = active.map((one) => `${targetOf(one)} loaded active active Share\n`).join('');
    const fault = faults.get('') ?? faults.get(line) ?? '';
    return { code: fault === '' ? 0 : 1, signal: null, stdout, stderr: fault };
  };
  const targets = new ShareTargets({ clock, log, processes: { run }, runtimeDir: scratch.path('run') });
  return {
    clock,
    targets,
    entries,
    news: () => told.splice(0).filter((one) => !one.startsWith('list-units')),
    files: async () => new Set(await readdir(scratch.path('run', 'shares')).catch(() => [])),
    fail: (fault: string, line = '') => void faults.set(line, fault),
    mend: () => faults.clear(),
    /** systemctl does not end before what is returned is called. */
    hang: () => {
      const end = new EventEmitter();
      hung = once(end, 'end').then(() => undefined);
      // It may come before anybody waits for it.
      hung.catch(() => undefined);
      const late = new DOMException('did not end', 'TimeoutError');
      return { goOn: () => end.emit('end'), late: () => end.emit('error', late) };
    },
    answers: () => void (hung = Promise.resolve()),
  };
}

describe('the targets of shares', () => {
  it('come with their share and go with it, each told once', async (t) => {
    const { targets, news, files } = await start(t);
    await targets.follow([]);
    assert.deepEqual(news(), []);
    await targets.follow(['photos', 'my files']);
    assert.deepEqual(news(), [
      'start mountkeeper-share@photos.target',
      String.raw`start mountkeeper-share@my\x20files.target`,
    ]);
    assert.deepEqual(await files(), new Set([String.raw`my\x20files`, 'photos']));
    await targets.follow(['photos', 'my files']);
    assert.deepEqual(news(), []);
    await targets.follow(['my files']);
    assert.deepEqual(news(), ['stop mountkeeper-share@photos.target']);
    assert.deepEqual(await files(), new Set([String.raw`my\x20files`]));
    await targets.close();
    assert.deepEqual(news(), [String.raw`stop mountkeeper-share@my\x20files.target`]);
    assert.deepEqual(await files(), new Set([]));
  });

  it('stay up while their share is mounted and cannot be listed, and are started once it can', async (t) => {
    const { clock, targets, news } = await start(t, ['former']);
    await targets.follow(['photos'], ['photos', 'music', 'former']);
    assert.deepEqual(news(), ['start mountkeeper-share@photos.target']);
    await clock.advance(61_000);
    await targets.follow([], ['photos', 'music', 'former']);
    assert.deepEqual(news(), []);
    await targets.follow(['photos', 'music'], ['photos', 'music']);
    assert.deepEqual(news(), [
      'stop mountkeeper-share@former.target',
      'start mountkeeper-share@music.target',
    ]);
    await targets.follow(['music'], ['music']);
    assert.deepEqual(news(), ['stop mountkeeper-share@photos.target']);
  });

  it('go and come with a share that is back before the next cycle', async (t) => {
    const { targets, news } = await start(t);
    await targets.left('photos');
    assert.deepEqual(news(), [], 'it was not up');
    targets.returned('photos');
    await targets.follow(['photos']);
    news();
    await targets.left('photos');
    targets.returned('photos');
    await targets.follow(['photos']);
    assert.deepEqual(news(), [
      'stop mountkeeper-share@photos.target',
      'start mountkeeper-share@photos.target',
    ]);
  });

  it('of a former daemon stay until their shares had time to be adopted', async (t) => {
    const { clock, targets, news } = await start(t, ['photos', 'old']);
    await targets.follow([]);
    await clock.advance(59_000);
    await targets.follow(['photos']);
    assert.deepEqual(
      news(),
      ['start mountkeeper-share@photos.target'],
      'which does nothing to one that is up',
    );
    await clock.advance(1_000);
    await targets.follow(['photos']);
    assert.deepEqual(news(), ['stop mountkeeper-share@old.target']);
    await targets.follow(['photos']);
    assert.deepEqual(news(), []);
  });

  it('are tried again when systemctl fails', async (t) => {
    const { targets, news, entries, fail, mend } = await start(t);
    fail('Access denied');
    await targets.follow(['photos']);
    assert.match(JSON.stringify(entries), /target of a share not set/);
    mend();
    news();
    await targets.follow(['photos']);
    assert.deepEqual(news(), ['start mountkeeper-share@photos.target']);
  });

  it('fail alone, and say so once until they work again', async (t) => {
    const { targets, news, entries, files, fail, mend } = await start(t);
    const refused = 'start mountkeeper-share@a.target';
    fail('Unit not found', refused);
    await targets.follow(['a', 'b']);
    assert.deepEqual(news(), [refused, 'start mountkeeper-share@b.target']);
    await targets.follow(['a', 'b']);
    assert.deepEqual(news(), [refused], 'tried again');
    const said = (): readonly unknown[] => entries.map(({ target }) => target);
    assert.deepEqual(said(), ['mountkeeper-share@a.target']);
    mend();
    await targets.follow(['a', 'b']);
    await targets.follow(['b']);
    fail('Unit not found', refused);
    await targets.follow(['a', 'b']);
    assert.equal(said().length, 2);
    await targets.follow(['b']);
    assert.deepEqual(await files(), new Set(['b']), 'a target that was refused once is not left startable');
  });

  it('are not started by a snapshot that is older than the end of their share', async (t) => {
    const { targets, news } = await start(t);
    await targets.follow(['photos']);
    await targets.left('photos');
    news();
    await targets.follow(['photos']);
    assert.deepEqual(news(), []);
    targets.returned('photos');
    await targets.follow(['photos']);
    assert.deepEqual(news(), ['start mountkeeper-share@photos.target']);
    await targets.left('photos');
    await targets.follow([]);
    news();
    await targets.follow(['photos']);
    assert.deepEqual(news(), ['start mountkeeper-share@photos.target'], 'a snapshot has shown it down since');
  });

  it('of a former daemon are stopped when their share goes, and at the end', async (t) => {
    const { targets, news } = await start(t, ['photos', 'old']);
    await targets.left('photos');
    assert.deepEqual(news(), ['stop mountkeeper-share@photos.target']);
    await targets.close();
    assert.deepEqual(news(), ['stop mountkeeper-share@old.target']);
    await targets.follow(['photos']);
    assert.deepEqual(news(), [], 'the end is the end');
  });

  it('wait for a systemctl that hangs, and then are as their shares are by then', async (t) => {
    const { targets, news, hang, answers, entries } = await start(t);
    await targets.follow([]);
    const { goOn } = hang();
    const all = [targets.follow(['a'])];
    for (let cycle = 0; cycle < 20; cycle += 1) {
      all.push(targets.left('a'));
      targets.returned('a');
      all.push(targets.follow(['a', 'b']), targets.follow(['a', 'b', 'c']));
    }
    all.push(targets.follow(['a', 'c']));
    goOn();
    await Promise.all(all);
    assert.deepEqual(news(), [
      'start mountkeeper-share@a.target',
      'stop mountkeeper-share@a.target',
      'start mountkeeper-share@a.target',
      'start mountkeeper-share@c.target',
    ]);
    const { late } = hang();
    const closing = targets.close();
    late();
    await closing;
    assert.deepEqual(
      news(),
      ['stop mountkeeper-share@a.target'],
      'the next one would not be answered either',
    );
    assert.equal(entries.length, 1);
    answers();
    await targets.close();
    assert.deepEqual(news(), ['stop mountkeeper-share@a.target', 'stop mountkeeper-share@c.target']);
  });

  it('have names as systemd-escape writes them', async () => {
    for (const share of ['photos', 'my files', '.hidden', 'a-b', 'Ärzte', 'a:b_c.d', '100%', 'x@y', '照片']) {
      const args = ['--template=mountkeeper-share@.target', share];
      const { stdout } = await promisify(execFile)('systemd-escape', args);
      assert.equal(targetOf(instanceName(share)), stdout.trim());
      assert.deepEqual(instancesIn(`${stdout.trim()} loaded active active Share\n`), [instanceName(share)]);
    }
  });
});
