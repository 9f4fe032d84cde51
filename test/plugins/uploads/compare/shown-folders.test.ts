/**
 * Folders that the uploader has put on the remote, and whose content the share may not show yet: what users make in
 * them is on record at once, whether the remote answers or not.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

const NEVER = new AbortController().signal;

describe('in a folder that was renamed', () => {
  let share: TestShare;

  beforeEach(async () => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'former'));
    share.othersWrite('a', 'of the NAS alone');
    share.up();
    renameSync(share.at('former'), share.at('plan'));
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
  });
  afterEach(() => share.close());

  const look = async (fault: Fault, isOpen?: () => ReadonlySet<string>): Promise<void> => {
    const uploader = share.uploader(fault, isOpen && { isOpen });
    uploader.flush();
    await uploader.look(NEVER);
    await uploader.settled();
    await uploader.stop();
  };
  const away: Fault = (call, when) => {
    if (when === 'before' && ['stat', 'list', 'upload', 'forget', 'moveFile', 'makeFolder'].includes(call))
      throw refusal('No route to host.', 'silent');
  };

  /** What users make there, and what others saved by the same name earlier, when the NAS was not heard of any more. */
  const made: Readonly<Record<string, () => void>> = {
    'a new file': () => writeFileSync(share.at('plan/r'), 'of users'),
    'a renamed file': () => renameSync(share.at('a'), share.at('plan/r')),
    'a new folder': () => {
      mkdirSync(share.at('plan/d'));
      writeFileSync(share.at('plan/d/r'), 'of users');
    },
  };
  for (const [what, make] of Object.entries(made))
    it(`${what} replaces nothing that others saved before it, unseen, while the NAS was away`, async () => {
      make();
      mkdirSync(join(share.nas, 'plan/d'), { recursive: true });
      const theirs = ['plan/r', 'plan/d/r', 'plan/d/other'];
      for (const path of theirs) share.othersWrite(path, `of others ${path}`);
      share.notYetShown = new Set([...theirs, 'plan/d']);
      for (let looks = 0; looks < 3; looks += 1) await look(away);
      // Another rclone, or the machine has started anew: all of it shows.
      share.notYetShown = new Set();
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
      const all = [...treeOf(share.nas).values()];
      for (const path of theirs) assert.ok(all.includes(`of others ${path}`), `${path}: ${all.join()}`);
      assert.ok(all.includes('of users') || all.includes('of the NAS alone'));
      assert.equal(share.conflicts.length, 1);
    });

  it('new files are learnt without a question to the NAS, however many', async () => {
    const paths = Array.from({ length: 50 }, (_, index) => `plan/${index}`);
    for (const path of paths) writeFileSync(share.at(path), 'of users');
    const calls: string[] = [];
    const heard: Fault = (call, when) => {
      if (when === 'before' && (call === 'stat' || call === 'list')) calls.push(call);
    };
    await look(heard, () => new Set(paths));
    assert.deepEqual(calls, []);
  });

  it('a new file goes up beside one that others have put there by its name, which does not show yet', async () => {
    writeFileSync(share.at('plan/r'), 'of users');
    share.othersWrite('plan/r', 'of others');
    share.notYetShown = new Set(['plan/r']);
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'plan/r'), 'utf8'), 'of others');
    assert.deepEqual([...treeOf(share.nas).values()].sort(), [
      '/',
      'of others',
      'of the NAS alone',
      'of users',
    ]);
    assert.equal(share.conflicts.length, 1);
  });

  it('a folder whose rename was not answered, deleted and replaced by another, does not come back', async () => {
    mkdirSync(join(share.nas, 'plan/d'));
    share.othersWrite('plan/d/x', 'deleted');
    mkdirSync(join(share.nas, 'c'));
    share.othersWrite('c/y', 'of c');
    share.down();
    share.up();
    renameSync(share.at('plan/d'), share.at('plan/e'));
    let answer = (): void => undefined;
    const isMoved = new Promise<void>((resolve) => (answer = resolve));
    let hasMoved = false;
    const unanswered = share.uploader((call, when) => {
      hasMoved ||= call === 'moveFolder' && when === 'after';
      if (!hasMoved) return undefined;
      answer();
      return new Promise(() => undefined);
    });
    await Promise.race([settle(unanswered).catch(() => undefined), isMoved]);
    rmSync(share.at('plan/e'), { recursive: true });
    renameSync(share.at('c'), share.at('plan/e'));
    share.notYetShown = new Set(['plan/e', 'plan/e/x']);
    // From memory: it did not show empty.
    share.stillShown = new Map<string, RemoteEntry>([
      ['plan/d', { name: 'd', kind: 'folder' }],
      ['plan/d/x', { name: 'x', kind: 'file', version: { bytes: 7, modifiedMs: 1_710_000_000_000 } }],
    ]);
    const uploader = share.uploader((call, when) => {
      // A listing that is read anew shows it.
      if (call === 'forget' && when === 'after') share.notYetShown = new Set();
    });
    await settle(uploader);
    await uploader.stop();
    const there = treeOf(share.nas);
    assert.equal(there.get('plan/e/y'), 'of c');
    assert.ok(![...there.values()].includes('deleted'), [...there.keys()].join());
    assert.deepEqual(share.conflicts, []);
  });
});
