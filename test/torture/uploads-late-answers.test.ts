/**
 * Uploads that came through although their answer was never seen: the NAS is asked before anything is sent
 * again.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { refusal, settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';
import type { Fault } from '../support/write-layer/uploader-share.ts';

describe('an upload whose answer is lost', () => {
  let share: TestShare;
  let sent = 0;

  beforeEach(() => {
    sent = 0;
    share = new TestShare();
    writeFileSync(join(share.nas, 'old'), 'first');
    utimesSync(join(share.nas, 'old'), 1_700_000_000, 1_700_000_000);
    share.up();
  });
  afterEach(() => share.close());

  const count: Fault = (call, when) => {
    if (call === 'upload' && when === 'before') sent += 1;
  };
  /** The work is done, and then the connection is gone. */
  const losing: Fault = (call, when) => {
    void count(call, when);
    if (call === 'upload' && when === 'after') throw refusal('The answer was lost.', 'silent');
  };
  const loseAnswer = async (): Promise<void> => {
    const uploader = share.uploader(losing);
    uploader.flush();
    await uploader.look(new AbortController().signal);
    await uploader.settled();
    await uploader.stop();
    assert.equal(sent, 1);
  };
  const run = async (): Promise<void> => {
    const uploader = share.uploader(count);
    await settle(uploader);
    await uploader.stop();
  };
  const isRight = (): void => {
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    assert.deepEqual(share.conflicts, [], 'nobody else has changed anything');
  };

  for (const path of ['new', 'old']) {
    it(`is not sent again: the NAS has it (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      await run();
      assert.equal(sent, 1);
      isRight();
    });

    it(`is known for ours when users have changed the file meanwhile (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      writeFileSync(share.at(path), 'of users, and more');
      await run();
      assert.equal(readFileSync(join(share.nas, path), 'utf8'), 'of users, and more');
      isRight();
    });

    it(`is known for ours when users have deleted the file meanwhile (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      rmSync(share.at(path));
      await run();
      assert.ok(!existsSync(join(share.nas, path)));
      isRight();
    });

    it(`is known for ours when users have renamed the file meanwhile (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      renameSync(share.at(path), share.at('elsewhere'));
      await run();
      assert.deepEqual([...treeOf(share.nas).keys()], path === 'new' ? ['elsewhere', 'old'] : ['elsewhere']);
      isRight();
    });

    it(`is known for ours when users have put a folder there meanwhile (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      rmSync(share.at(path));
      mkdirSync(share.at(path));
      writeFileSync(share.at(`${path}/in`), 'it');
      await run();
      assert.equal(readFileSync(join(share.nas, path, 'in'), 'utf8'), 'it');
      isRight();
    });

    it(`leaves alone what others have put there since (${path})`, async () => {
      writeFileSync(share.at(path), 'of users');
      await loseAnswer();
      writeFileSync(join(share.nas, path), 'of others, later');
      writeFileSync(share.at(path), 'of users, and more');
      await run();
      assert.equal(readFileSync(join(share.nas, path), 'utf8'), 'of others, later');
      assert.equal(share.conflicts.length, 1);
      assert.equal(
        readFileSync(join(share.nas, share.conflicts[0]?.copy ?? ''), 'utf8'),
        'of users, and more',
      );
    });
  }
});
