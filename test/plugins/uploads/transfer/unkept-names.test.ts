/** Names that the remote would give back as others: what has them stays here, is told of, and holds up nobody. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import { nameProblem } from '../../../../plugins/mount/rclone/kept-names.ts';
import { leftWaiting, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const BAD = 'bad\tname';
const REASON = 'The remote cannot keep the name "bad\\tname": it has a control character. Rename it.';

describe('an entry whose name the remote cannot keep', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    for (const path of ['a', 'd/x']) writeFileSync(join(share.nas, path), `first ${path}`);
    const mine: Partial<RemoteFiles> = { nameProblem: (name) => nameProblem('sftp', name) };
    share.files = Object.assign(Object.create(share.remote()) as RemoteFiles, mine);
    share.up();
  });
  afterEach(() => share.close());

  const left = () => leftWaiting(share);
  const isOnNas = (path: string): boolean => existsSync(join(share.nas, path));

  it('stays here, stuck, with the name in its reason, and all others go up', async () => {
    writeFileSync(share.at(BAD), 'mine');
    writeFileSync(share.at('good'), 'mine, too');
    assert.deepEqual(await left(), { [BAD]: `stuck: ${REASON}` });
    assert.equal(isOnNas(BAD), false);
    assert.equal(readFileSync(share.at(BAD), 'utf8'), 'mine');
    assert.equal(readFileSync(join(share.nas, 'good'), 'utf8'), 'mine, too');
  });

  it('goes up once it has another name', async () => {
    writeFileSync(share.at(BAD), 'mine');
    await left();
    renameSync(share.at(BAD), share.at('better'));
    assert.deepEqual(await left(), {});
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
  });

  it('can be deleted', async () => {
    writeFileSync(share.at(BAD), 'mine');
    await left();
    rmSync(share.at(BAD));
    assert.deepEqual(await left(), {});
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
  });

  it('is deleted on the NAS, too, where others have made it', async () => {
    writeFileSync(join(share.nas, BAD), 'theirs');
    rmSync(share.at(BAD));
    assert.deepEqual(await left(), {});
    assert.equal(isOnNas(BAD), false);
  });

  it('keeps what is in it here, when it is a folder', async () => {
    mkdirSync(share.at(BAD));
    writeFileSync(share.at(`${BAD}/in`), 'mine');
    assert.deepEqual(await left(), { [BAD]: `stuck: ${REASON}`, [`${BAD}/in`]: `stuck: ${REASON}` });
    assert.equal(isOnNas(BAD), false);
  });

  for (const [kind, from, inside] of [
    ['file', 'a', ''],
    ['folder', 'd', '/x'],
  ] as const)
    it(`stays under its former name on the NAS, when it is a ${kind} from there, until it has another`, async () => {
      renameSync(share.at(from), share.at(BAD));
      writeFileSync(share.at('other'), 'mine');
      const waiting = await left();
      assert.equal(waiting[BAD], `stuck: ${REASON}`);
      assert.ok(isOnNas(`${from}${inside}`), 'the only copy is left alone');
      assert.ok(isOnNas('other'), 'others go up');
      renameSync(share.at(BAD), share.at('better'));
      assert.deepEqual(await left(), {});
      assert.equal(readFileSync(join(share.nas, `better${inside}`), 'utf8'), `first ${from}${inside}`);
      assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
      assert.deepEqual(share.conflicts, []);
    });

  it('stays under its former name on the NAS, when it was written here and renamed afterwards', async () => {
    writeFileSync(share.at('new'), 'mine');
    assert.deepEqual(await left(), {});
    renameSync(share.at('new'), share.at(BAD));
    assert.equal((await left())[BAD], `stuck: ${REASON}`);
    assert.equal(readFileSync(join(share.nas, 'new'), 'utf8'), 'mine');
    renameSync(share.at(BAD), share.at('better'));
    assert.deepEqual(await left(), {});
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
  });
});
