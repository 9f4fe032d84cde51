/** What an upper folder holds, read by this process and by `find`: the same words. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { EntryList } from '../../../../plugins/uploads/compare/list-entries.ts';
import { sleep } from '../../../support/platform/wait.ts';
import { processes } from '../../../support/write-layer/uploader-share.ts';

const { signal } = new AbortController();

describe('the entries of an upper folder', () => {
  let upper: string;
  let started: string[];
  const counting: Pick<Processes, 'run'> = {
    run: (spec) => {
      started.push(spec.command);
      return processes.run(spec);
    },
  };

  beforeEach(() => {
    upper = mkdtempSync(join(tmpdir(), 'mk-entries-'));
    started = [];
  });
  afterEach(() => rmSync(upper, { recursive: true, force: true }));

  const sorted = (text: string): readonly string[] => text.split('\0').toSorted();

  it('are listed without a process while there are few, in the words of find', async () => {
    mkdirSync(join(upper, 'a folder/ü💾'), { recursive: true });
    for (const name of ['f', 'line\nbreak', ' lead', 'trail ', '-x', 'a folder/ü💾/g'])
      writeFileSync(join(upper, name), name);
    symlinkSync('f', join(upper, 'link'));
    execFileSync('mkfifo', [join(upper, 'pipe')]);
    utimesSync(join(upper, 'f'), 1_700_000_000.25, 1_700_000_000.000_001);
    for (const what of ['all', 'folders'] as const) {
      const few = await new EntryList(upper, counting).read(what, signal);
      assert.deepEqual(started, []);
      const found = await new EntryList(upper, processes, 0).read(what, signal);
      assert.deepEqual(sorted(few), sorted(found));
      assert.equal(few.split('\0')[0], found.split('\0')[0]);
    }
  });

  it('are of the folder itself, whatever link somebody puts in its place meanwhile', async () => {
    mkdirSync(join(upper, 'upper/p/d'), { recursive: true });
    mkdirSync(join(upper, 'outside/d'), { recursive: true });
    for (const name of Array.from({ length: 40 }, (_, index) => `f${index}`))
      writeFileSync(join(upper, 'upper', name), '');
    writeFileSync(join(upper, 'outside/d/secret'), 'secret');
    const swap =
      'my ($p, $q, $o) = @ARGV; while (1) { rename $p, $q; symlink $o, $p; select undef, undef, undef, 0.001;' +
      ' unlink $p; rename $q, $p; select undef, undef, undef, 0.001; }';
    const paths = [join(upper, 'upper/p'), join(upper, 'aside'), join(upper, 'outside')];
    const swapping = spawn('perl', ['-e', swap, ...paths]);
    try {
      const list = new EntryList(join(upper, 'upper'), processes);
      const seen: string[] = [];
      // What is no folder any more while it is entered makes a look fail, which is tried again.
      for (let turn = 0; turn < 120; turn += 1)
        seen.push(await list.read('all', signal).catch((error: Error) => error.message));
      assert.deepEqual(
        seen.filter((text) => text.includes('secret')),
        [],
      );
      assert.ok(seen.some((text) => text.includes(' p/d')) && seen.some((text) => !text.includes(' p/d')));
    } finally {
      swapping.kill('SIGKILL');
      await once(swapping, 'close');
    }
  });

  it('are left to find when there are many, and read here again when they have become few', async () => {
    const list = new EntryList(upper, counting, 3);
    for (const name of ['a', 'b', 'c', 'd']) writeFileSync(join(upper, name), '');
    for (let turn = 0; turn < 2; turn += 1)
      assert.equal((await list.read('all', signal)).split('\0').length, 6);
    assert.deepEqual(started, ['find', 'find']);
    for (const name of ['b', 'c', 'd']) rmSync(join(upper, name));
    assert.equal((await list.read('all', signal)).split('\0').length, 3);
    assert.equal((await list.read('all', signal)).split('\0').length, 3);
    assert.deepEqual(started, ['find', 'find', 'find']);
  });

  it('are seen at once also in a folder that was empty before', async () => {
    const list = new EntryList(upper, counting, undefined, () => Date.now());
    const namesIn = async (what: 'all' | 'folders' = 'all'): Promise<readonly string[]> =>
      (await list.read(what, signal)).split('\0').slice(1, -1);
    for (let turn = 0; turn < 20; turn += 1) {
      assert.deepEqual(await namesIn(), []);
      // Half of the time it was empty for long enough for that to be known.
      if (turn % 2 === 0) await sleep(30);
      assert.deepEqual([await namesIn(), await namesIn('folders')], [[], []]);
      mkdirSync(join(upper, 'd'));
      assert.deepEqual((await namesIn()).length, 1);
      rmSync(join(upper, 'd'), { recursive: true });
      writeFileSync(join(upper, 'f'), '');
      assert.deepEqual([(await namesIn()).length, (await namesIn('folders')).length], [1, 0]);
      rmSync(join(upper, 'f'));
    }
    rmSync(upper, { recursive: true });
    await assert.rejects(namesIn(), /the upper folder cannot be read/);
  });

  it('are seen in another folder in its place, also with the same times', async () => {
    const list = new EntryList(upper, counting, undefined, () => Date.now());
    await sleep(30);
    await list.read('all', signal);
    await list.read('all', signal);
    const other = `${upper}-other`;
    mkdirSync(other);
    writeFileSync(join(other, 'f'), '');
    rmSync(upper, { recursive: true });
    renameSync(other, upper);
    assert.equal((await list.read('all', signal)).split('\0').length, 3);
  });

  it('are left to find where a name is no text', async () => {
    execFileSync('sh', ['-c', String.raw`: > "$1/$(printf '\377')"`, 'sh', upper]);
    assert.equal((await new EntryList(upper, counting).read('all', signal)).split('\0').length, 3);
    assert.deepEqual(started, ['find']);
  });

  it('are not told where the folder is gone', async () => {
    rmSync(upper, { recursive: true });
    await assert.rejects(
      new EntryList(upper, counting).read('all', signal),
      /the upper folder cannot be read/,
    );
  });
});
