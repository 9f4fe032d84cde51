/**
 * Names that are not valid UTF-8, which no remote can be told, and names that look like them: nothing is lost on the
 * NAS, and what has such a name goes up once it has another.
 */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { bytesOf } from '../../../../plugins/uploads/compare/names.ts';
import { leftWaiting, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const BAD = 'caf\udce9';
const SHOWN = String.raw`caf\xe9`;
const STUCK = `stuck: The remote cannot keep the name "${SHOWN}": it is not valid UTF-8. Rename it.`;
/** Where the name were taken for text. */
const ALIKE = 'caf\uFFFD';

describe('an entry whose name is no text', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd/sub'), { recursive: true });
    for (const path of ['a', 'd/x', 'd/sub/y', ALIKE]) writeFileSync(join(share.nas, path), `first ${path}`);
    share.up();
  });
  afterEach(() => share.close());

  const bad = (path = ''): Buffer => bytesOf(share.at(`${BAD}${path}`));
  const left = () => leftWaiting(share);
  const onNas = (path: string): string => readFileSync(join(share.nas, path), 'utf8');
  const isOnNas = (path: string): boolean => existsSync(join(share.nas, path));
  /** All of it is on the NAS, and looks as users see it. */
  const settles = async (): Promise<void> => {
    assert.deepEqual(await left(), {});
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    await share.renew();
    assert.deepEqual(await left(), {});
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    assert.deepEqual(share.conflicts, []);
  };

  for (const when of ['', ', also after a start'])
    for (const [kind, from, inside] of [
      ['file', 'a', ''],
      ['folder', 'd', '/sub/y'],
    ] as const)
      it(`stays where it is on the NAS, when it is a ${kind} from there${when}`, async () => {
        const before = treeOf(share.nas);
        renameSync(share.at(from), bad());
        assert.equal((await left())[SHOWN], STUCK);
        if (when !== '') await share.renew();
        assert.equal((await left())[SHOWN], STUCK);
        assert.deepEqual(treeOf(share.nas), before);
        assert.equal(readFileSync(bad(inside), 'utf8'), `first ${from}${inside}`);
        renameSync(bad(), share.at('better'));
        await settles();
        assert.equal(onNas(`better${inside}`), `first ${from}${inside}`);
        assert.equal(isOnNas(from), false);
      });

  for (const from of ['a', 'd'])
    it(`has its own name again, after it was looked at: ${from}`, async () => {
      const before = treeOf(share.nas);
      renameSync(share.at(from), bad());
      await left();
      renameSync(bad(), share.at(from));
      await settles();
      assert.deepEqual(treeOf(share.nas), before);
    });

  it('holds up nobody else', async () => {
    renameSync(share.at('d'), bad());
    writeFileSync(share.at('new'), 'mine');
    writeFileSync(share.at('a'), 'mine');
    rmSync(share.at(ALIKE));
    assert.equal((await left())[SHOWN], STUCK);
    assert.deepEqual([onNas('new'), onNas('a'), isOnNas(ALIKE)], ['mine', 'mine', false]);
    assert.equal(onNas('d/sub/y'), 'first d/sub/y');
  });

  it('stays, with all that is in it, when it was renamed on the NAS before', async () => {
    renameSync(share.at('d'), share.at('e'));
    await settles();
    renameSync(share.at('e'), bad());
    await left();
    await left();
    await share.renew();
    await left();
    assert.equal(onNas('e/sub/y'), 'first d/sub/y');
    renameSync(bad(), share.at('f'));
    await settles();
    assert.equal(onNas('f/sub/y'), 'first d/sub/y');
  });

  it('keeps the folder that it was in where it is on the NAS', async () => {
    renameSync(share.at('d/x'), bad());
    assert.equal((await left())[SHOWN], STUCK);
    renameSync(share.at('d'), share.at('e'));
    const reason = 'What was in it has a name now that is not valid UTF-8; it goes once that is renamed.';
    assert.equal((await left())['e'], `waiting: ${reason}`);
    assert.equal(readFileSync(bad(), 'utf8'), 'first d/x');
    renameSync(bad(), share.at('e/z'));
    await settles();
    assert.equal(onNas('e/z'), 'first d/x');
  });

  for (const [kind, from, inside] of [
    ['file', 'x', ''],
    ['folder', 'sub', '/y'],
  ] as const)
    it(`is found after a start where its folder was moved to right before, when it is a ${kind}`, async () => {
      renameSync(share.at('d'), share.at('e'));
      share.live = 'remembers';
      await left();
      assert.ok(isOnNas(`e/${from}${inside}`));
      renameSync(share.at(`e/${from}`), bad());
      const uploader = share.uploader();
      await uploader.settleMoves(new AbortController().signal);
      await uploader.stop();
      share.live = 'no';
      await left();
      await share.renew();
      assert.equal((await left())[SHOWN], STUCK);
      assert.equal(readFileSync(bad(inside), 'utf8'), `first d/${from}${inside}`);
      renameSync(bad(), share.at('better'));
      await settles();
      assert.equal(onNas(`better${inside}`), `first d/${from}${inside}`);
    });

  it('stays under its former name on the NAS, when others are in its place', async () => {
    renameSync(share.at('a'), bad());
    writeFileSync(share.at('a'), 'another');
    assert.equal((await left())[SHOWN], STUCK);
    assert.equal(onNas('a'), 'first a');
    renameSync(bad(), share.at('b'));
    await settles();
    assert.deepEqual([onNas('a'), onNas('b')], ['another', 'first a']);
  });

  it('stays under its former name on the NAS, when it was written here and renamed afterwards', async () => {
    mkdirSync(share.at('mine'));
    writeFileSync(share.at('mine/f'), 'mine');
    assert.deepEqual(await left(), {});
    renameSync(share.at('mine'), bad());
    assert.equal((await left())[SHOWN], STUCK);
    assert.equal(onNas('mine/f'), 'mine');
    renameSync(bad(), share.at('better'));
    await settles();
    assert.equal(onNas('better/f'), 'mine');
  });

  it('is nothing that the NAS has by the name that it looks like', async () => {
    writeFileSync(bad(), 'mine');
    assert.deepEqual(await left(), { [SHOWN]: STUCK });
    rmSync(bad());
    assert.deepEqual(await left(), {});
    mkdirSync(bad());
    writeFileSync(bad('/in'), 'mine');
    assert.deepEqual(await left(), { [SHOWN]: STUCK, [`${SHOWN}/in`]: STUCK });
    await share.renew();
    assert.equal(readFileSync(bad('/in'), 'utf8'), 'mine');
    rmSync(bad(), { recursive: true });
    await settles();
    assert.equal(onNas(ALIKE), `first ${ALIKE}`);
  });

  it('is deleted here alone where the NAS has it, and not what looks like it there', async () => {
    const path = bytesOf(join(share.nas, BAD));
    writeFileSync(path, 'of the NAS');
    rmSync(bad());
    assert.deepEqual(await left(), { [SHOWN]: STUCK });
    assert.equal(onNas(ALIKE), `first ${ALIKE}`);
    assert.equal(readFileSync(path, 'utf8'), 'of the NAS');
  });

  it('keeps no share from being mounted where the NAS has such a folder', async () => {
    mkdirSync(bytesOf(join(share.nas, BAD)));
    chmodSync(bad(), 0o700);
    await share.renew();
    assert.deepEqual(await left(), { [SHOWN]: STUCK });
  });

  it('can be deleted, as on the NAS', async () => {
    renameSync(share.at('d'), bad());
    await left();
    rmSync(bad(), { recursive: true });
    await settles();
    assert.equal(isOnNas('d'), false);
  });
});

describe('an entry whose name has the sign for what is no text', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd\uFFFD/sub'), { recursive: true });
    for (const path of ['a', 'd\uFFFD/sub/x']) writeFileSync(join(share.nas, path), `first ${path}`);
    share.up();
  });
  afterEach(() => share.close());

  const settles = async (): Promise<void> => {
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
  };

  it('is moved on the NAS, as are those in it', async () => {
    renameSync(share.at('d\uFFFD/sub'), share.at('d\uFFFD/sub2'));
    renameSync(share.at('a'), share.at('a\uFFFD'));
    await settles();
    assert.equal(readFileSync(join(share.nas, 'd\uFFFD/sub2/x'), 'utf8'), 'first d\uFFFD/sub/x');
    assert.equal(readFileSync(join(share.nas, 'a\uFFFD'), 'utf8'), 'first a');
    await share.renew();
    await settles();
  });

  it('goes up, and a folder stays when it is mounted anew before that', async () => {
    mkdirSync(share.at('x\uFFFD'));
    writeFileSync(share.at('d\uFFFD/f'), 'mine');
    await share.renew();
    await settles();
    assert.equal(readFileSync(join(share.nas, 'd\uFFFD/f'), 'utf8'), 'mine');
    assert.ok(existsSync(join(share.nas, 'x\uFFFD')));
  });
});
