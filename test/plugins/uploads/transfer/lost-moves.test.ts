/**
 * A move whose answer was never seen, of what users have removed or replaced since: whether the NAS has done
 * it or not, it ends as they wanted, and nobody is told of a conflict. What they cannot have seen stays.
 */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { lookOnly } from '../../../support/write-layer/uploader-crash.ts';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const MOVES = { a: 'b', d: 'e' } as const;
type Source = keyof typeof MOVES;

describe('a move whose answer was never seen', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    for (const path of ['a', 'd/x']) {
      writeFileSync(join(share.nas, path), `first ${path}`);
      utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
    }
    share.up();
  });
  afterEach(() => share.close());

  /** An uploader that is killed when it has asked for the move. */
  const ask = async (): Promise<void> => {
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const uploader = share.uploader((call, when) => {
      if (!call.startsWith('move') || when === 'after') return undefined;
      asked();
      return new Promise(() => undefined);
    });
    uploader.flush();
    await uploader.look(new AbortController().signal);
    await isAsked;
  };
  /** The NAS has done the move: the uploader is killed before it hears of that, or right after it has noted it. */
  const killedInMove = async (isRecorded: boolean): Promise<void> => {
    let isMoved = false;
    let tell = (): void => undefined;
    const isKilled = new Promise<void>((resolve) => (tell = resolve));
    const uploader = share.uploader((call, when) => {
      isMoved ||= call.startsWith('move') && when === 'after';
      const isNext = ['openForWriting', 'inUse', 'below', 'rewriteMarks', 'takeOut'].includes(call);
      if (!isMoved || (isRecorded && !isNext)) return undefined;
      tell();
      return new Promise(() => undefined);
    });
    await Promise.race([settle(uploader).catch(() => undefined), isKilled]);
  };
  /** The share shows from memory what was in `d`. */
  const remembers = (): void => {
    share.stillShown = new Map<string, RemoteEntry>([
      ['d', { name: 'd', kind: 'folder' }],
      ['d/x', { name: 'x', kind: 'file', version: { bytes: 9, modifiedMs: 1_700_000_000_000 } }],
    ]);
  };
  const run = async (): Promise<void> => {
    const uploader = share.uploader();
    try {
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
  };

  for (const isRemade of [false, true])
    it(`that was never sent makes nothing of others' the users' own (another is made: ${isRemade})`, async () => {
      renameSync(share.at('d'), share.at('e'));
      let isAway = true;
      const uploader = share.uploader((call) => {
        if (isAway && ['stat', 'list', 'makeFolder', 'moveFolder'].includes(call))
          throw refusal('The NAS does not answer.', 'silent');
      });
      const look = async (): Promise<number> => {
        uploader.flush();
        const { dirtyFiles } = await uploader.look(new AbortController().signal);
        await uploader.settled();
        return dirtyFiles;
      };
      await look();
      mkdirSync(join(share.nas, 'e'));
      writeFileSync(join(share.nas, 'e/z'), 'theirs');
      rmSync(share.at('e'), { recursive: true });
      if (isRemade) {
        mkdirSync(share.at('e'));
        writeFileSync(share.at('e/mine'), 'mine');
      }
      for (const _ of [1, 2, 3, 4]) assert.ok((await look()) > 0, 'it waits');
      await uploader.look(new AbortController().signal);
      await uploader.settled();
      assert.equal(uploader.isLookDue, false, 'and is not asked again at once');
      isAway = false;
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(
        [readFileSync(join(share.nas, 'e/z'), 'utf8'), existsSync(join(share.nas, 'd'))],
        ['theirs', false],
      );
      assert.equal(existsSync(join(share.nas, 'e/mine')), isRemade);
      assert.deepEqual(share.conflicts, []);
    });

  for (const [isStarted, found] of [
    [false, 'found out later'],
    [true, 'found out by a start'],
  ] as const) {
    it(`that the NAS has done deletes nothing of a folder that showed empty and was removed (${found})`, async () => {
      renameSync(share.at('d'), share.at('e'));
      await killedInMove(false);
      share.dropNames();
      // Succeeds only because it shows empty.
      rmdirSync(share.at('e'));
      if (isStarted) await share.renew();
      await run();
      assert.equal(readFileSync(join(share.nas, 'e/x'), 'utf8'), 'first d/x');
      assert.deepEqual(
        share.conflicts.map(({ path, what }) => [path, what]),
        [['e', 'deleted']],
      );
      assert.deepEqual(readdirSync(share.at('e')), ['x'], 'users see it again');
    });

    it(`takes no file of others for the folder (${found})`, async () => {
      renameSync(share.at('d'), share.at('e'));
      await ask();
      rmSync(share.at('e'), { recursive: true });
      rmSync(join(share.nas, 'd'), { recursive: true });
      writeFileSync(join(share.nas, 'e'), 'theirs');
      if (isStarted) await share.renew();
      await run();
      assert.equal(readFileSync(join(share.nas, 'e'), 'utf8'), 'theirs');
    });
  }

  /** Who is to find out first. */
  const first: Readonly<Record<string, () => Promise<void>>> = {
    'the uploader': () => Promise.resolve(),
    'a start': () => share.renew(),
    'another rclone': async () => {
      const uploader = share.uploader();
      await uploader.settleMoves(new AbortController().signal);
      await uploader.stop();
    },
  };
  for (const [who, findsOut] of Object.entries(first))
    it(`is of no account once all in the folder was removed, and that was seen before: ${who} asks`, async () => {
      renameSync(share.at('d'), share.at('e'));
      await ask();
      rmSync(share.at('e'), { recursive: true });
      await lookOnly(share);
      renameSync(join(share.nas, 'd'), join(share.nas, 'e'));
      await findsOut();
      await run();
      assert.deepEqual(
        ['d', 'e'].map((path) => existsSync(join(share.nas, path))),
        [false, false],
      );
      assert.deepEqual(share.conflicts, []);
    });

  it('is over a file of ours whose upload was not answered either: nobody else has put it there', async () => {
    writeFileSync(share.at('b'), 'sent');
    const uploader = share.uploader((call, when) => {
      if (call === 'upload' && when === 'after') throw refusal('The answer was lost.', 'silent');
    });
    uploader.flush();
    await uploader.look(new AbortController().signal);
    await uploader.settled();
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'b'), 'utf8'), 'sent');
    renameSync(share.at('a'), share.at('b'));
    await run();
    assert.deepEqual(
      [...treeOf(share.nas)].filter(([, content]) => content !== '/'),
      [
        ['b', 'first a'],
        ['d/x', 'first d/x'],
      ],
    );
    assert.deepEqual(share.conflicts, []);
  });

  it('leaves its place to what users put there since, over a former file, on a NAS without times', async () => {
    share.precisionMs = Infinity;
    writeFileSync(share.at('b'), 'before');
    await run();
    renameSync(share.at('a'), share.at('b'));
    await killedInMove(false);
    assert.equal(existsSync(join(share.nas, 'a')), false);
    rmSync(share.at('b'));
    writeFileSync(share.at('b'), 'new');
    await run();
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['b', 'new'],
        ['d', '/'],
        ['d/x', 'first d/x'],
      ]),
    );
    assert.deepEqual(share.conflicts, []);
  });

  for (const kept of ['s', 's/x'])
    it(`is of no account where users have put back what they had written in the folder: ${kept}`, async () => {
      share.hasHashes = true;
      mkdirSync(share.at('d/s'));
      writeFileSync(share.at('d/s/x'), 'mine');
      await run();
      renameSync(share.at('d'), share.at('e'));
      await killedInMove(false);
      remembers();
      renameSync(share.at(`e/${kept}`), share.at('kept'));
      rmSync(share.at('e'), { recursive: true });
      mkdirSync(share.at(kept === 's' ? 'd' : 'd/s'), { recursive: true });
      renameSync(share.at('kept'), share.at(`d/${kept}`));
      await run();
      assert.equal(treeOf(share.nas).get('d/s/x'), 'mine');
      assert.equal(existsSync(join(share.nas, 'e')), false);
      assert.equal(readFileSync(share.at('d/s/x'), 'utf8'), 'mine');
    });

  for (const source of Object.keys(MOVES) as Source[]) {
    const target = MOVES[source];
    const move = (): void => renameSync(share.at(source), share.at(target));
    for (const isDone of [true, false]) {
      const done = isDone ? 'the NAS has done it' : 'the NAS has not done it';
      /** The share does not know of it yet. */
      const onNas = (): void => {
        if (!isDone) return;
        renameSync(join(share.nas, source), join(share.nas, target));
        if (source === 'd') remembers();
      };

      it(`is of no account once it was removed (${target}, ${done})`, async () => {
        move();
        await ask();
        rmSync(share.at(target), { recursive: true });
        onNas();
        await run();
        assert.deepEqual(
          [existsSync(join(share.nas, source)), existsSync(join(share.nas, target))],
          [false, false],
        );
        assert.deepEqual(share.conflicts, []);
      });

      it(`leaves its place to what users put there since (${target}, ${done})`, async () => {
        move();
        await ask();
        rmSync(share.at(target), { recursive: true });
        if (source === 'd') mkdirSync(share.at(target));
        const file = source === 'd' ? `${target}/new` : target;
        writeFileSync(share.at(file), 'new');
        onNas();
        await run();
        assert.equal(readFileSync(join(share.nas, file), 'utf8'), 'new');
        assert.deepEqual(
          [...treeOf(share.nas).keys()].filter((path) => path.startsWith(target)),
          source === 'd' ? ['e', 'e/new'] : ['b'],
        );
        assert.equal(existsSync(join(share.nas, source)), false);
        assert.deepEqual(share.conflicts, []);
      });

      it(`is done when they have renamed it once more (${target}, ${done})`, async () => {
        move();
        await ask();
        renameSync(share.at(target), share.at('again'));
        onNas();
        await run();
        const file = source === 'd' ? 'again/x' : 'again';
        assert.equal(readFileSync(join(share.nas, file), 'utf8'), source === 'd' ? 'first d/x' : 'first a');
        assert.deepEqual(
          [existsSync(join(share.nas, source)), existsSync(join(share.nas, target))],
          [false, false],
        );
        assert.deepEqual(share.conflicts, []);
      });
    }

    for (const isRecorded of [true, false])
      it(`leaves what others put where ${source} was, until a start (${isRecorded ? 'noted' : 'unseen'})`, async () => {
        move();
        await killedInMove(isRecorded);
        const theirs = source === 'd' ? 'd/theirs' : 'a';
        if (source === 'd') mkdirSync(join(share.nas, 'd'));
        writeFileSync(join(share.nas, theirs), 'theirs');
        await share.renew();
        await run();
        // A folder of theirs is taken for what is left of the one that was being moved.
        const found = source === 'd' && !isRecorded ? 'e/theirs' : theirs;
        assert.equal(readFileSync(join(share.nas, found), 'utf8'), 'theirs');
        assert.equal(readFileSync(share.at(found), 'utf8'), 'theirs');
        assert.equal(
          readFileSync(join(share.nas, source === 'd' ? 'e/x' : 'b'), 'utf8'),
          `first ${source === 'd' ? 'd/x' : 'a'}`,
        );
      });
  }
});
