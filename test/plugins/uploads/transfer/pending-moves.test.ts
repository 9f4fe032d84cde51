/**
 * Listings are read anew, and lower layers exchanged, only while users see each folder where the NAS has it.
 * On a real overlay.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { isAtOrInside } from '../../../../plugins/uploads/compare/paths.ts';
import { Records } from '../../../../plugins/uploads/compare/records.ts';
import { keyOf } from '../../../../plugins/uploads/compare/scan.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { until } from '../../../support/platform/wait.ts';
import { LateScan } from '../../../support/write-layer/late-scan.ts';
import { crashAfter } from '../../../support/write-layer/uploader-crash.ts';
import { clock, processes, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

describe('moves on the NAS', () => {
  let share: TestShare;
  const { signal } = new AbortController();

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    writeFileSync(join(share.nas, 'd/x'), 'first');
    share.up();
    share.live = 'drops names';
  });
  afterEach(() => share.close());

  const markOf = (path: string): string =>
    execFileSync(
      'getfattr',
      ['--absolute-names', '--only-values', '-n', 'trusted.overlay.redirect', join(share.upper, path)],
      { encoding: 'utf8' },
    );
  const look = async (uploader: ShareUploader): Promise<void> => {
    uploader.flush();
    await uploader.look(signal);
  };

  it('do not begin while listings are read anew', async () => {
    const uploader = share.uploader();
    await settle(uploader);
    const release = await uploader.holdMoves(signal);
    renameSync(share.at('d'), share.at('e'));
    await look(uploader);
    await uploader.settled();
    assert.ok(existsSync(join(share.nas, 'd/x')));
    release();
    await settle(uploader);
    assert.ok(existsSync(join(share.nas, 'e/x')));
    await uploader.stop();
  });

  for (const [how, hasHashes, isListed] of [
    ['with hashes', true, false],
    ['without hashes', false, false],
    ['and lists it by both', true, true],
    ['and lists it by both, without hashes', false, true],
  ] as const)
    it(`lose nothing where a remote finds a folder by its former name, ${how}`, async () => {
      // As rclone's backends that address folders by numbers, and remember which path had which.
      const renamed = new Map<string, string>();
      const now = (path: string): string =>
        [...renamed].reduce(
          (at, [from, to]) => (isAtOrInside(at, from) ? to + at.slice(from.length) : at),
          path,
        );
      share.hasHashes = hasHashes;
      const remote = share.remote();
      share.files = {
        ...remote,
        precisionMs: share.precisionMs,
        stat: (path, options) => remote.stat(now(path), options),
        list: async (folder, options) => {
          const entries = await remote.list(now(folder), options);
          const former = isListed && folder === '' ? [...renamed.keys()] : [];
          return entries && [...entries, ...former.map((name) => ({ name, kind: 'folder' }) as const)];
        },
        moveFile: (from, to, options) => remote.moveFile(now(from), now(to), options),
        deleteFile: (path, options) => remote.deleteFile(now(path), options),
        removeFolder: (folder, options) => remote.removeFolder(now(folder), options),
        moveFolder: async (from, to, options) => {
          await remote.moveFolder(now(from), to, options);
          renamed.set(from, to);
        },
      };
      for (const folder of ['d/in', 'd/none']) mkdirSync(join(share.nas, folder));
      writeFileSync(join(share.nas, 'd/in/y'), 'inner');
      share.down();
      share.up();
      renameSync(share.at('d'), share.at('e'));
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(Object.fromEntries(treeOf(share.nas)), {
        e: '/',
        'e/in': '/',
        'e/in/y': 'inner',
        'e/none': '/',
        'e/x': 'first',
      });
      assert.deepEqual(share.conflicts, []);
    });

  it('keep what is back by its former path, in a folder that has come in the place of its own', async () => {
    for (const folder of ['e', 'f', 'f/in']) mkdirSync(join(share.nas, folder));
    writeFileSync(join(share.nas, 'f/in/z'), 'of the folder in it');
    share.down();
    share.up();
    renameSync(share.at('d/x'), share.at('e/x'));
    renameSync(share.at('f/in'), share.at('e/in'));
    renameSync(share.at('e'), share.at('d'));
    renameSync(share.at('d'), share.at('f'));
    renameSync(share.at('f/x'), share.at('x'));
    mkdirSync(share.at('d'));
    renameSync(share.at('x'), share.at('d/x'));
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), {
      d: '/',
      'd/x': 'first',
      f: '/',
      'f/in': '/',
      'f/in/z': 'of the folder in it',
    });
  });

  it('that nobody has answered and users took back hold up nothing that was moved into the folder before', async () => {
    mkdirSync(join(share.nas, 'e'));
    share.down();
    share.up();
    renameSync(share.at('d'), share.at('e/s'));
    const first = share.uploader();
    await settle(first);
    await first.stop();
    renameSync(share.at('e'), share.at('d'));
    await crashAfter(share, 3);
    renameSync(share.at('d'), share.at('e'));
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), { e: '/', 'e/s': '/', 'e/s/x': 'first' });
  });

  it('are waited for until users see them, as long as the asker likes', async () => {
    let answer = (): void => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    const uploader = share.uploader((call, when) =>
      call === 'moveFolder' && when === 'after' ? asked : undefined,
    );
    renameSync(share.at('d'), share.at('e'));
    await look(uploader);
    await look(uploader);
    await assert.rejects(uploader.holdMoves(clock.deadline(300)), /are being moved on the remote just now/);
    const hold = uploader.holdMoves(signal);
    answer();
    await uploader.settled();
    const looks = settle(uploader);
    const release = await hold;
    assert.equal(markOf('e'), '/e');
    release();
    await looks;
    await uploader.stop();
  });

  it('are waited for where they are files without data, too, for as long as their renewal may take', async () => {
    let answer = (): void => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    const calls: string[] = [];
    const uploader = share.uploader((call, when) => {
      calls.push(`${call} ${when}`);
      return call === 'takeOut' && when === 'before' ? asked : undefined;
    });
    renameSync(share.at('d/x'), share.at('d/y'));
    await until(
      'it is being renewed',
      async () => {
        await look(uploader);
        return calls.includes('takeOut before');
      },
      { timeoutMs: 15_000 },
    );
    let isHeld = false;
    const hold = uploader.holdMoves(signal).then((release) => {
      isHeld = true;
      return release;
    });
    for (const _ of [1, 2, 3]) await look(uploader);
    assert.deepEqual([isHeld, calls.includes('takeOut after')], [false, false]);
    answer();
    const looks = settle(uploader);
    (await hold)();
    assert.ok(calls.includes('takeOut after'));
    await looks;
    await uploader.stop();
  });

  /** `d` is renamed to `e`, and removed there while it shows empty: the NAS has moved it, its mark is not renewed. */
  const withUnseen = async (act: () => void): Promise<ShareUploader> => {
    let answer = (): void => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    let isRenewing = false;
    const uploader = share.uploader((call, when) => {
      if (call !== 'takeOut' || when !== 'before') return undefined;
      isRenewing = true;
      return asked;
    });
    renameSync(share.at('d'), share.at('e'));
    await until(
      'the NAS has moved it, and its mark is to be renewed',
      async () => {
        await look(uploader);
        return isRenewing;
      },
      { timeoutMs: 15_000 },
    );
    share.dropNames();
    // Succeeds only because it shows empty.
    rmdirSync(share.at('e'));
    share.live = 'no';
    act();
    answer();
    await settle(uploader);
    return uploader;
  };

  it('delete nothing of a folder that shows empty until its mark is renewed, and is removed meanwhile', async () => {
    const uploader = await withUnseen(() => undefined);
    await uploader.stop();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), { e: '/', 'e/x': 'first' });
    assert.deepEqual(
      share.conflicts.map(({ path, what }) => [path, what]),
      [['e', 'deleted']],
    );
    assert.deepEqual(readdirSync(share.at('e')), ['x'], 'users see it again');
  });

  it('leave what is in such a folder where users make another in its place, and go on with that', async () => {
    const uploader = await withUnseen(() => {
      mkdirSync(share.at('e'));
      writeFileSync(share.at('e/x'), 'another');
      writeFileSync(share.at('e/y'), 'new');
    });
    const contents = (): readonly string[] =>
      [...treeOf(share.nas).values()].filter((content) => content !== '/').sort();
    assert.deepEqual(contents(), ['another', 'first', 'new']);
    assert.ok(share.conflicts.some(({ path, what }) => path === 'e' && what === 'deleted'));
    unlinkSync(share.at('e/y'));
    mkdirSync(share.at('d'));
    writeFileSync(share.at('d/z'), 'by the former name');
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(contents(), ['another', 'by the former name', 'first']);
    assert.ok(existsSync(join(share.nas, 'd/z')));
  });

  it('hide nothing at the former place once such a folder shows again, and somebody works in it', async () => {
    const uploader = await withUnseen(() => {
      // A share whose listing has no such name yet makes no whiteout: it shows once that is read anew.
      share.down();
      unlinkSync(join(share.upper, 'e'));
      share.up();
      writeFileSync(share.at('e/new'), 'new');
    });
    for (const _ of [1, 2, 3]) {
      await look(uploader);
      await uploader.settled();
    }
    await settle(uploader);
    mkdirSync(join(share.nas, 'd'));
    writeFileSync(join(share.nas, 'd/theirs'), 'of others');
    share.down();
    share.up();
    assert.deepEqual(readdirSync(share.at('d')), ['theirs']);
    unlinkSync(share.at('e/x'));
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), {
      d: '/',
      'd/theirs': 'of others',
      e: '/',
      'e/new': 'new',
    });
  });

  it('are not seen where another folder has taken the place of the renewed one', async () => {
    share.live = 'no';
    let isRemade = false;
    const uploader = share.uploader((call, when) => {
      if (call !== 'takeOut' || when !== 'after' || isRemade || !existsSync(join(share.nas, 'e'))) return;
      isRemade = true;
      share.down();
      rmdirSync(join(share.upper, 'e'));
      mkdirSync(join(share.upper, 'e'));
      execFileSync('setfattr', ['-n', 'trusted.overlay.opaque', '-v', 'y', join(share.upper, 'e')]);
      share.up();
    });
    renameSync(share.at('d'), share.at('e'));
    await settle(uploader);
    await uploader.stop();
    assert.ok(isRemade);
    assert.equal(treeOf(share.nas).get('e/x'), 'first');
    assert.ok(share.conflicts.some(({ path, what }) => path === 'e' && what === 'deleted'));
  });

  it('are looked for once in a plan: what it deletes and what it lets go of are believed together', async () => {
    writeFileSync(join(share.nas, 'gone'), 'gone');
    unlinkSync(share.at('gone'));
    const first = share.uploader((call) =>
      call === 'deleteFile' ? new Promise(() => undefined) : undefined,
    );
    await look(first);
    const upper = lstatSync(share.upper, { bigint: true });
    const records = await Records.open(share.records, `${upper.ino} ${upper.birthtimeNs}`, () => true);
    records.set('over', { remote: { kind: 'nothing' } });
    await records.saved();
    await records.close();
    // Longer than what a folder must have been still for until a look at it can be believed.
    await clock.sleep(50);
    let looks = 0;
    const counting: Pick<Processes, 'run'> = {
      run: (spec) => {
        if (spec.command === 'find') looks += 1;
        return processes.run(spec);
      },
    };
    const uploader = share.uploader(
      (call) => (call === 'deleteFile' ? new Promise(() => undefined) : undefined),
      {
        processes: counting,
      },
    );
    await look(uploader);
    assert.equal(looks, 2, 'the scan, and whether nothing was renamed since');
  });

  it('are seen before anything is taken out, also by a look that began before they ended', async () => {
    for (const name of ['gone', 'one']) writeFileSync(join(share.nas, name), name);
    const late = new LateScan();
    const calls: string[] = [];
    let move = (): void => undefined;
    const isMoved = new Promise<void>((resolve) => (move = resolve));
    const uploader = share.uploader(
      (call, when) => {
        if (when === 'before') calls.push(call);
        return call === 'moveFile' && when === 'before' ? isMoved : undefined;
      },
      { processes: late },
    );
    unlinkSync(share.at('gone'));
    while (existsSync(join(share.nas, 'gone'))) {
      await look(uploader);
      await uploader.settled();
    }
    renameSync(share.at('one'), share.at('two'));
    while (!calls.includes('moveFile')) await look(uploader);
    late.holdNext();
    const looking = look(uploader);
    await late.isHeld;
    move();
    await uploader.settled();
    late.goOn();
    await looking;
    await uploader.settled();
    assert.ok(existsSync(join(share.nas, 'two')));
    assert.deepEqual(
      calls.filter((call) => ['moveFile', 'takeOut'].includes(call)),
      ['moveFile'],
    );
    await settle(uploader);
    assert.ok(calls.includes('takeOut'));
    await uploader.stop();
  });

  it('of files are shown before a listing is read anew for others, also when that fails at first', async () => {
    writeFileSync(join(share.nas, 'gone'), 'gone');
    const calls: string[] = [];
    const uploader = share.uploader((call, when) => {
      if (when !== 'before' || !['forget', 'takeOut'].includes(call)) return;
      calls.push(call);
      if (calls.length === 1) throw new Error('The kernel does not answer.');
    });
    unlinkSync(share.at('gone'));
    renameSync(share.at('d/x'), share.at('d/y'));
    await until(
      'it is shown as the NAS has it',
      async () => {
        await look(uploader);
        await uploader.settled();
        return !existsSync(join(share.upper, 'd/y'));
      },
      { timeoutMs: 15_000 },
    );
    assert.deepEqual(calls.slice(0, 2), ['takeOut', 'takeOut'], calls.join());
    await settle(uploader);
    assert.ok(calls.includes('forget'));
    await uploader.stop();
  });

  it('whose answer was lost are found out before another lower layer is seen, and marks say so', async () => {
    renameSync(share.at('d'), share.at('e'));
    const former = share.uploader((call, when) =>
      call === 'moveFolder' && when === 'after' ? new Promise(() => undefined) : undefined,
    );
    await look(former);
    await look(former);
    assert.equal(markOf('e'), 'd');
    const uploader = share.uploader();
    await uploader.settleMoves(signal);
    assert.equal(markOf('e'), '/e');
    assert.ok(existsSync(join(share.nas, 'e/x')));
    await settle(uploader);
    await uploader.stop();
  });

  it('change names with each other beside a file that was written to before its own move was seen', async () => {
    for (const name of ['one', 'two']) writeFileSync(join(share.nas, name), name);
    const first = share.uploader();
    await settle(first);
    await first.stop();
    writeFileSync(share.at('written'), 'data of its own');
    const open = openSync(share.at('written'), 'a');
    const { ino, birthtimeNs } = lstatSync(join(share.upper, 'written'), { bigint: true });
    const upper = lstatSync(share.upper, { bigint: true });
    const records = await Records.open(share.records, `${upper.ino} ${upper.birthtimeNs}`, () => true);
    records.setMove(keyOf(ino, birthtimeNs), { at: 'written', former: ['before'] });
    await records.saved();
    await records.close();

    renameSync(share.at('one'), share.at('third'));
    renameSync(share.at('two'), share.at('one'));
    renameSync(share.at('third'), share.at('two'));
    const uploader = share.uploader();
    await until(
      'the NAS has both by their new names',
      async () => {
        await look(uploader);
        const there = ['one', 'two'].map((name) => join(share.nas, name));
        return there.every((path) => existsSync(path)) && readFileSync(there[0]!, 'utf8') === 'two';
      },
      { timeoutMs: 15_000 },
    );
    assert.equal(readFileSync(join(share.nas, 'two'), 'utf8'), 'one');
    closeSync(open);
    await settle(uploader);
    await uploader.stop();
  });

  it('are on record while their file is taken out, and it comes back since somebody has it open', async () => {
    const at = join(share.upper, 'd/y');
    let times = 0;
    const uploader: ShareUploader = share.uploader(async (call, when) => {
      if (call !== 'takeOut' || when !== 'before' || (times += 1) > 1) return;
      renameSync(at, join(share.root, 'away'));
      for (const _ of [1, 2, 3]) await look(uploader);
      renameSync(join(share.root, 'away'), at);
    });
    renameSync(share.at('d/x'), share.at('d/y'));
    await settle(uploader);
    assert.ok(times > 0);
    // One look finds it here again, the next is about what is known of it.
    await settle(uploader);
    await uploader.stop();
    assert.deepEqual([readdirSync(join(share.nas, 'd')), share.conflicts], [['y'], []]);
  });
});
