/**
 * A file takes the place of the one that is just being sent. What comes by a rename has no data here: where rclone
 * read it by its name, as many zeros would lie on the NAS.
 */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Item } from '../../../../plugins/uploads/compare/plan-types.ts';
import { keyOf } from '../../../../plugins/uploads/compare/scan.ts';
import { withContent } from '../../../../plugins/uploads/transfer/content.ts';
import { Changed } from '../../../../plugins/uploads/transfer/step-tools.ts';
import type { StepTools } from '../../../../plugins/uploads/transfer/step-tools.ts';
import { startRemote } from '../../../support/write-layer/uploader-remote.ts';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const BYTES = 1_000;

describe('a file in whose place another comes while it is sent', () => {
  let share: TestShare;
  const ends: (() => Promise<void>)[] = [];

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'f'));
    writeFileSync(join(share.nas, 'a'), 'former');
    writeFileSync(join(share.nas, 'f/x'), 'x'.repeat(BYTES));
    for (const path of ['a', 'f/x']) utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
    share.up();
    writeFileSync(share.at('a'), 'overwritten');
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    share.close();
  });

  /** Does it right before the first upload; resolves with what the NAS had after each one. */
  const during = async (act: () => void): Promise<(string | undefined)[]> => {
    const seen: (string | undefined)[] = [];
    let isDone = false;
    const uploader = share.uploader((call, when) => {
      if (call !== 'upload') return;
      if (when === 'after') seen.push(treeOf(share.nas).get('a'));
      else if (!isDone) {
        isDone = true;
        act();
      }
    });
    try {
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual(
      readdirSync(share.records).filter((name) => name.startsWith('sending-')),
      [],
    );
    return seen;
  };
  const contents = (): [string, string][] => [...treeOf(share.nas)].filter(([, text]) => text !== '/');
  const renamedOver = (): void => renameSync(share.at('f/x'), share.at('a'));

  it('goes up with its own content, and is replaced by the one that was renamed', async () => {
    assert.deepEqual(await during(renamedOver), ['overwritten']);
    assert.deepEqual(contents(), [['a', 'x'.repeat(BYTES)]]);
    assert.deepEqual(share.conflicts, []);
  });

  it('is what rclone reads, too', async () => {
    const remote = await startRemote('local', share.nas);
    ends.push(() => remote.close());
    share.files = remote.files;
    assert.deepEqual(await during(renamedOver), ['overwritten']);
    assert.deepEqual(contents(), [['a', 'x'.repeat(BYTES)]]);
    assert.deepEqual(share.conflicts, []);
  });

  it('is no conflict after a lost answer, though a program wrote into it before it was read, and again', async () => {
    let calls = 0;
    const uploader = share.uploader((call, when) => {
      if (call !== 'upload' || calls > 1) return;
      calls += 1;
      appendFileSync(share.at('a'), ` ${calls}`);
      if (when === 'after') throw refusal('The answer was lost.', 'silent');
    });
    try {
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.equal(treeOf(share.nas).get('a'), 'overwritten 1 2');
    assert.deepEqual(share.conflicts, []);
  });

  it('is nothing outside of the share, by a link in the place of its folder', async () => {
    const [upper, outside] = [join(share.root, 'own'), join(share.root, 'outside')];
    mkdirSync(join(outside, 'd'), { recursive: true });
    mkdirSync(join(upper, 'p/d'), { recursive: true });
    for (const folder of [join(upper, 'p'), outside]) writeFileSync(join(folder, 'd/key'), folder);
    const open = async (): Promise<string> => {
      const { ino, birthtimeNs } = statSync(join(upper, 'p/d/key'), { bigint: true });
      const entry = { kind: 'file', path: 'p/d/key', key: keyOf(ino, birthtimeNs) };
      const layer = { upper, records: share.records };
      return withContent(
        { path: 'p/d/key', entry } as unknown as Item,
        { layer } as unknown as StepTools,
        ({ handle }) => handle.readFile('utf8'),
      );
    };
    assert.equal(await open(), join(upper, 'p'));
    renameSync(join(upper, 'p'), join(upper, 'q'));
    symlinkSync(outside, join(upper, 'p'));
    await assert.rejects(open(), Changed);
  });

  it('is not what a link leads to', async () => {
    writeFileSync(join(share.root, 'secret'), 'secret');
    const seen = await during(() => {
      rmSync(share.at('a'));
      symlinkSync(join(share.root, 'secret'), share.at('a'));
    }).catch((error: Error) => assert.match(error.message, /not settled.*files and folders only/s));
    assert.equal(seen, undefined);
    assert.equal(
      contents().some(([, text]) => text === 'secret'),
      false,
    );
  });

  it('leaves no link behind when the daemon was killed', async () => {
    symlinkSync(`/proc/${process.pid}/fd/0`, join(share.records, 'sending-left'));
    await during(() => undefined);
    assert.deepEqual(contents()[0], ['a', 'overwritten']);
  });
});
