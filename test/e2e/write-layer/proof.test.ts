// @load quiet
/** A NAS that damages what it is given: nothing counts as saved that was not compared as the share asks for. */
import assert from 'node:assert/strict';
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Proof } from '../../../plugins/uploads/proof/same-content.ts';
import { startRemote } from '../../support/write-layer/uploader-remote.ts';
import type { RemoteType, TestRemote } from '../../support/write-layer/uploader-remote.ts';
import { refusal, settle, TestShare } from '../../support/write-layer/uploader-share.ts';

const CONTENT = 'what users wrote'.repeat(1_000);

interface Case {
  readonly type: RemoteType | 'times alone';
  readonly proof: Proof;
  readonly isNoticed: boolean;
}

describe('a NAS that turns a byte over', () => {
  let share: TestShare;
  let remote: TestRemote | undefined;
  let sent: number;

  beforeEach(() => {
    share = new TestShare();
    share.up();
    sent = 0;
  });
  afterEach(async () => {
    await remote?.close();
    remote = undefined;
    share.close();
  });

  /** Size and time stay. */
  const damage = (path: string): void => {
    const { mtimeMs } = statSync(path);
    const bytes = readFileSync(path);
    bytes[7_000] = (bytes[7_000] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    utimesSync(path, mtimeMs / 1_000, mtimeMs / 1_000);
  };

  for (const { type, proof, isNoticed } of [
    { type: 'webdav', proof: 'hash', isNoticed: true },
    { type: 'local', proof: 'hash', isNoticed: true },
    { type: 'times alone', proof: 'read-back', isNoticed: true },
    { type: 'local', proof: 'read-back', isNoticed: true },
    { type: 'times alone', proof: 'hash', isNoticed: false },
    { type: 'local', proof: 'size', isNoticed: false },
  ] satisfies readonly Case[])
    it(`is ${isNoticed ? 'given the file again' : 'believed'} (${type}, proof by ${proof})`, async () => {
      if (type !== 'times alone') {
        remote = await startRemote(type, share.nas);
        share.files = remote.files;
      }
      const uploader = share.uploader(
        (call, when) => {
          if (call !== 'upload' || when !== 'after') return;
          sent += 1;
          if (sent === 1) damage(join(share.nas, 'reel'));
        },
        { proof },
      );
      writeFileSync(share.at('reel'), CONTENT);
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
      const { dirtyFiles } = await uploader.look(new AbortController().signal);
      assert.equal(dirtyFiles, isNoticed ? 1 : 0, 'damaged files wait');
      await settle(uploader);
      await uploader.stop();
      assert.equal(sent, isNoticed ? 2 : 1);
      assert.equal(readFileSync(join(share.nas, 'reel'), 'utf8') === CONTENT, isNoticed);
      assert.deepEqual(share.conflicts, [], 'nobody else has changed anything');
    });

  it('whose answer to the reading back is lost, is not given the file again', async () => {
    share.precisionMs = Infinity;
    let refused = 0;
    const uploader = share.uploader((call, when) => {
      if (call === 'upload' && when === 'after') sent += 1;
      if (call === 'readBack' && when === 'before' && (refused += 1) === 1)
        throw refusal('The connection was lost.');
    });
    writeFileSync(share.at('reel'), CONTENT);
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual([sent, refused], [1, 2]);
    assert.deepEqual(share.conflicts, []);
  });

  it('is not blamed for what users write while it is read back', async () => {
    share.precisionMs = Infinity;
    let isFirst = true;
    const uploader = share.uploader((call, when) => {
      if (call === 'upload' && when === 'after') sent += 1;
      if (call !== 'readBack' || when !== 'after' || !isFirst) return;
      isFirst = false;
      writeFileSync(share.at('reel'), `${CONTENT}, and more`);
    });
    writeFileSync(share.at('reel'), CONTENT);
    uploader.flush();
    await uploader.look(new AbortController().signal);
    await uploader.settled();
    assert.deepEqual(
      uploader.queue().map(({ tries, reason }) => [tries, /another file/.test(reason)]),
      uploader.queue().map(() => [0, false]),
    );
    await settle(uploader);
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'reel'), 'utf8'), `${CONTENT}, and more`);
    assert.equal(sent, 2);
  });
});
