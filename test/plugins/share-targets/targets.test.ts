import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
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
  let fault = '';
  const run = async ({ command, args: [verb = '', ...args] }: ShortCommand) => {
    assert.equal(command, 'systemctl');
    told.push(`${verb} ${args.at(-1) ?? ''}`);
    const stdout = active.map((one) => `${targetOf(one)} loaded active active Share\n`).join('');
    return { code: fault === '' ? 0 : 1, signal: null, stdout, stderr: fault };
  };
  const targets = new ShareTargets({ clock, log, processes: { run }, runtimeDir: scratch.path('run') });
  return {
    clock,
    targets,
    entries,
    news: () => told.splice(0).filter((one) => !one.startsWith('list-units')),
    files: async () => new Set(await readdir(scratch.path('run', 'shares')).catch(() => [])),
    fail: (with_: string) => void (fault = with_),
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

  it('go and come with a share that is back before the next cycle', async (t) => {
    const { targets, news } = await start(t);
    await targets.left('photos');
    assert.deepEqual(news(), [], 'it was not up');
    await targets.follow(['photos']);
    news();
    await targets.left('photos');
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
    const { targets, news, entries, fail } = await start(t);
    fail('Access denied');
    await targets.follow(['photos']);
    assert.match(JSON.stringify(entries), /targets of shares not set/);
    fail('');
    news();
    await targets.follow(['photos']);
    assert.deepEqual(news(), ['start mountkeeper-share@photos.target']);
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
