/** A file that is new goes up without a question before it: the remote itself leaves what it finds there. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { crashAfter } from '../../../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

const SECOND = 1_700_000_000;
/** More than an uploader makes for these files. */
const MOST_CALLS = 24;

describe('a new file', () => {
  let share: TestShare;
  const calls: string[] = [];

  beforeEach(() => {
    calls.length = 0;
    share = new TestShare();
    share.up();
  });
  afterEach(() => share.close());

  const run = async (fault: Fault = () => undefined): Promise<void> => {
    const uploader = share.uploader(
      (call, when) => {
        if (when === 'before') calls.push(call);
        return fault(call, when);
      },
      // The folder that is the NAS has no hashes: size and time alone would have to do.
      { proof: 'read-back' },
    );
    await settle(uploader);
    await uploader.stop();
  };
  /** Of others, in the moment before ours is sent. */
  const put = (text: string): Fault => {
    let isDone = false;
    return (call) => {
      if (call !== 'upload' || isDone) return;
      isDone = true;
      writeFileSync(join(share.nas, 'a'), text);
      utimesSync(join(share.nas, 'a'), SECOND, SECOND);
    };
  };
  const write = (text: string): void => {
    writeFileSync(share.at('a'), text);
    utimesSync(share.at('a'), SECOND, SECOND);
  };

  it('is asked for once, after it was sent', async () => {
    write('of users');
    await run();
    assert.deepEqual(
      calls.filter((call) => ['stat', 'list', 'makeFolder', 'upload'].includes(call)),
      ['upload', 'stat'],
    );
    assert.deepEqual(treeOf(share.nas), new Map([['a', 'of users']]));
  });

  for (const [what, theirs] of [
    ['another file', 'of others, longer'],
    ['a file of the same size and time', 'of other'],
  ] as const)
    it(`replaces nothing that others put there in that moment: ${what}`, async () => {
      write('of users');
      await run(put(theirs));
      assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), theirs);
      assert.deepEqual([...treeOf(share.nas).values()].sort(), [theirs, 'of users'].sort());
      assert.equal(share.conflicts.length, 1);
    });

  it('is no conflict where others put the same there in that moment', async () => {
    write('of users');
    await run(put('of users'));
    assert.deepEqual(treeOf(share.nas), new Map([['a', 'of users']]));
    assert.deepEqual(share.conflicts, []);
  });

  it('goes beside a folder that others made there in that moment', async () => {
    write('of users');
    await run((call) => void (call === 'upload' && mkdirSync(join(share.nas, 'a'), { recursive: true })));
    assert.deepEqual([...treeOf(share.nas).values()].sort(), ['/', 'of users']);
    assert.equal(share.conflicts.length, 1);
  });

  it('is asked for first where the remote would replace what it finds', async () => {
    share.leavesTaken = false;
    write('of users');
    await run();
    assert.deepEqual(
      calls.filter((call) => ['stat', 'upload'].includes(call)),
      ['stat', 'upload', 'stat'],
    );
  });

  describe('among many that are small', () => {
    const names = Array.from({ length: 6 }, (_, index) => `a${index}`);
    const writeAll = (): void => {
      for (const name of names) {
        writeFileSync(share.at(name), `of users ${name}`);
        utimesSync(share.at(name), SECOND, SECOND);
      }
    };
    const all = new Map(names.map((name) => [name, `of users ${name}`]));

    it('costs hardly a call of its own', async () => {
      share.transfers = 1;
      writeAll();
      await run();
      assert.deepEqual(
        calls.filter((call) => ['stat', 'list', 'makeFolder', 'upload'].includes(call)),
        ['upload', 'stat'],
      );
      assert.deepEqual(treeOf(share.nas), all);
    });

    for (const theirs of ['of others, longer', 'of uther a3'])
      it(`replaces nothing that others put there in that moment: ${theirs}`, async () => {
        writeAll();
        let isDone = false;
        await run((call) => {
          if (call !== 'upload' || isDone) return;
          isDone = true;
          writeFileSync(join(share.nas, 'a3'), theirs);
          utimesSync(join(share.nas, 'a3'), SECOND, SECOND);
        });
        assert.equal(readFileSync(join(share.nas, 'a3'), 'utf8'), theirs);
        assert.deepEqual([...treeOf(share.nas).values()].sort(), [...all.values(), theirs].sort());
        assert.equal(share.conflicts.length, 1);
      });

    it('goes beside a folder that others made there in that moment, and the rest as it is', async () => {
      writeAll();
      await run((call) => void (call === 'upload' && mkdirSync(join(share.nas, 'a3'), { recursive: true })));
      assert.deepEqual([...treeOf(share.nas).values()].sort(), ['/', ...all.values()].sort());
      assert.equal(share.conflicts.length, 1);
    });

    it('is there, and nothing else, when the answer to the call was lost', async () => {
      writeAll();
      let isLost = false;
      await run((call, when) => {
        if (call !== 'upload' || when === 'before' || isLost) return;
        isLost = true;
        throw new Error('lost');
      });
      assert.deepEqual(treeOf(share.nas), all);
      assert.deepEqual(share.conflicts, []);
    });

    it('is not sent with them when it was replaced in that moment', async () => {
      writeAll();
      let isDone = false;
      await run((call) => {
        if (call !== 'upload' || isDone) return;
        isDone = true;
        writeFileSync(share.at('a3.tmp'), 'newer');
        renameSync(share.at('a3.tmp'), share.at('a3'));
      });
      assert.deepEqual(treeOf(share.nas), new Map([...all, ['a3', 'newer']]));
      assert.deepEqual(share.conflicts, []);
    });

    it('comes through once, whichever call an uploader is killed at', async () => {
      for (let killed = 1; killed <= MOST_CALLS; killed += 1) {
        share.close();
        share = new TestShare();
        share.up();
        writeAll();
        await crashAfter(share, killed);
        // What users make of it after the kill counts.
        writeFileSync(share.at('a1'), `newer ${killed}`);
        await run();
        assert.deepEqual(treeOf(share.nas), new Map([...all, ['a1', `newer ${killed}`]]), `call ${killed}`);
        assert.deepEqual(share.conflicts, [], `call ${killed}`);
      }
    });
  });
});
