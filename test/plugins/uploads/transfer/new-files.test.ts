/** A file that is new goes up without a question before it: the remote itself leaves what it finds there. */
import assert from 'node:assert/strict';
import { readFileSync, utimesSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

const SECOND = 1_700_000_000;

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
});
