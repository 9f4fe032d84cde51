/** What users give up leaves the upper folder: the moments after its move. Leases are real; there is no overlay. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { LeavingEntry, RemoteEntry } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { createProcesses } from '../../../../../core/platform/processes/processes.ts';
import { moveThenDropNames } from '../../../../../plugins/mount/layer/overlay.ts';
import { layerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import type { LayerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import { leftAside } from '../../../../../plugins/mount/layer/upper/set-aside.ts';
import { TakeOut } from '../../../../../plugins/mount/layer/upper/take-out.ts';
import type { TakeOutOptions } from '../../../../../plugins/mount/layer/upper/take-out.ts';
import { unlessRoot } from '../../../../runner/skips.ts';
import { runClient } from '../../../../support/exports/client-programs.ts';
import { detachAll, mountsBelow } from '../../../../support/platform/mounted-file-systems.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';

const MINUTE = 60_000;

describe('a file that is given up', () => {
  let scratch: Scratch;
  let paths: LayerPaths;
  let clock: ReturnType<typeof createManualClock>;
  let taker: TakeOut;
  let begin: () => TakeOut;
  /** In place of what does nothing. */
  let told: Partial<TakeOutOptions>;
  /** Runs when the kernel is told to drop its names. */
  let meanwhile: () => void;
  let count = 0;
  before(async () => (scratch = await createScratch('take-out')));
  after(() => scratch.close());
  beforeEach(async () => {
    count += 1;
    paths = layerPaths(scratch.path(`cache${count}`));
    mkdirSync(paths.upper, { recursive: true });
    mkdirSync(paths.aside, { recursive: true });
    const mountPoint = scratch.path(`mount${count}`);
    mkdirSync(mountPoint);
    clock = createManualClock();
    meanwhile = () => undefined;
    told = {};
    const { log } = collectLog();
    const processes = createProcesses({ stateDir: scratch.path('state'), clock, log });
    const options = {
      paths,
      mountPoint,
      marks: { prepare: async () => undefined, lowerPath: async (path: string) => path },
      processes: {
        run: (command: Parameters<TakeOutOptions['processes']['run']>[0]) =>
          (told.processes ?? processes).run(command),
      },
      clock,
      log,
      precisionMs: () => 1_000,
      isCached: () => false,
      listLower: (folders: readonly string[]) => told.listLower?.(folders) ?? Promise.resolve(new Map()),
      forget: (...args: Parameters<TakeOutOptions['forget']>) => told.forget?.(...args) ?? Promise.resolve(),
      overNothing: (folders: readonly string[]) => told.overNothing?.(folders) ?? (() => undefined),
      dropNames: () => told.dropNames?.() ?? Promise.resolve(meanwhile()),
      moveAside: async (...[moves, start]: Parameters<TakeOutOptions['moveAside']>) => {
        const to = { upper: paths.upper, mountPoint, spec: undefined, begin: start };
        const { moved } = await moveThenDropNames(moves, to, { processes });
        await (told.dropNames?.() ?? meanwhile());
        return moved;
      },
      holdCalls: () => told.holdCalls?.() ?? (() => undefined),
      settleCalls: async () => told.settleCalls?.(),
    };
    begin = () => new TakeOut(options as unknown as TakeOutOptions);
    taker = begin();
  });

  const at = (path: string): string => join(paths.upper, path);
  const keptAt = (path: string): string => join(paths.discarded, 'time', path);
  const entryOf = (path: string, more: Partial<LeavingEntry>): LeavingEntry => {
    const { ino, size, mtimeNs, ctimeNs } = lstatSync(at(path), { bigint: true });
    const times = { modifiedNs: mtimeNs, changedNs: ctimeNs };
    return { path, kind: 'file', inode: ino, bytes: Number(size), ...times, isOpaque: false, ...more };
  };
  const giveUp = (
    path: string,
    discardTo = keptAt(path),
    more: Partial<LeavingEntry> = {},
  ): Promise<readonly string[]> => taker.take([entryOf(path, { theirs: {}, discardTo, ...more })]);
  /** Of what comes back to a name that somebody has given to something new: names in the upper folder then. */
  const namesAfterReturn = async (hasNoData: boolean): Promise<readonly string[]> => {
    writeFileSync(at('a.txt'), 'mine');
    const { ino, size, mtimeNs, ctimeNs } = lstatSync(at('a.txt'), { bigint: true });
    meanwhile = () => {
      const aside = join(paths.aside, readdirSync(paths.aside).sort().at(-1) ?? '', '0');
      if (!existsSync(at('a.txt'))) writeFileSync(at('a.txt'), 'new');
      // Touched since it was moved: so it comes back.
      else if (existsSync(aside)) chmodSync(aside, 0o600);
    };
    const version = { bytes: Number(size), modifiedMs: Number(mtimeNs / 1_000_000n) };
    const theirs: RemoteEntry = { kind: 'file', name: 'a.txt', version };
    told = {
      listLower: async () => new Map([['', [theirs]]]),
      forget: async (_folders, change) => void (await change?.()),
    };
    const taken = await taker.take([
      {
        path: 'a.txt',
        kind: 'file',
        inode: ino,
        bytes: Number(size),
        modifiedNs: mtimeNs,
        changedNs: ctimeNs,
        isOpaque: false,
        ...(hasNoData ? { hasNoData } : { theirs: { entry: theirs } }),
      },
    ]);
    assert.deepEqual([taken, readFileSync(at('a.txt'), 'utf8')], [[], 'new']);
    return readdir(paths.upper);
  };
  /** A minute later, when it is decided. */
  const rest = async (): Promise<void> => {
    await clock.advance(MINUTE);
    await taker.take([]);
  };

  it('stays where it is kept though somebody copies it out after a minute, and not while somebody writes', async () => {
    for (const name of ['read', 'written']) writeFileSync(at(name), name);
    assert.deepEqual([await giveUp('read'), await giveUp('written')], [['read'], ['written']]);
    const holders = [openSync(keptAt('read'), 'r'), openSync(keptAt('written'), 'r+')];
    await rest();
    for (const holder of holders) closeSync(holder);
    assert.deepEqual([existsSync(at('read')), readFileSync(keptAt('read'), 'utf8')], [false, 'read']);
    assert.deepEqual(
      [existsSync(keptAt('written')), readFileSync(at('written'), 'utf8')],
      [false, 'written'],
    );
    assert.deepEqual(await readdir(paths.aside), []);
  });

  it('is out of sight only while calls wait: its listing is looked at before, names are dropped at once', async () => {
    writeFileSync(at('moved'), '');
    const seen: string[] = [];
    const note = (what: string): void =>
      void seen.push(`${what} ${existsSync(at('moved')) ? 'here' : 'out'}`);
    told = {
      forget: async (_folders, change) => {
        note('looks');
        await change?.();
        note('forgets');
      },
      dropNames: async () => note('drops'),
      holdCalls: () => {
        note('waits');
        return () => note('goes on');
      },
    };
    await giveUp('moved', keptAt('moved'), { hasNoData: true });
    assert.deepEqual(seen, [
      'looks here',
      'waits here',
      'drops out',
      'forgets out',
      'goes on out',
      'drops out',
    ]);
  });

  it('has left once it is out, though it cannot be looked for at its new place after that', async () => {
    writeFileSync(at('moved'), '');
    let looks = 0;
    const others = createProcesses({ stateDir: scratch.path('state'), clock, log: collectLog().log });
    told = {
      forget: async (_folders, change) => void (await change?.()),
      processes: {
        run: async (spec) => {
          if (spec.command === 'find' && (looks += 1) > 1)
            throw new Error('find did not end within 20000 ms');
          return others.run(spec);
        },
      },
    };
    const entry = entryOf('moved', { hasNoData: true });
    assert.deepEqual(await taker.take([entry]), ['moved']);
    assert.deepEqual([looks, existsSync(at('moved'))], [2, false]);
  });

  it('stays where it is while the marks of folders that were renamed beside it cannot be written', async () => {
    writeFileSync(at('moved'), '');
    mkdirSync(at('folder'));
    const others = createProcesses({ stateDir: scratch.path('state'), clock, log: collectLog().log });
    let tries = 0;
    const order: string[] = [];
    told = {
      forget: async (_folders, change) => void (await change?.()),
      holdCalls: () => {
        order.push('wait');
        return () => order.push('go on');
      },
      settleCalls: async () => void order.push('let end'),
      processes: {
        run: async (spec) => {
          if (spec.args.some((arg) => arg.includes('setfattr')) && (tries += 1) < 3)
            throw new Error('sh did not end within 10000 ms');
          return others.run(spec);
        },
      },
    };
    const both = (): LeavingEntry[] => [
      entryOf('folder', { kind: 'folder', nowAt: 'folder', movedFrom: 'former' }),
      entryOf('moved', { hasNoData: true }),
    ];
    await assert.rejects(taker.take(both()), /sh did not end/);
    assert.deepEqual([tries, existsSync(at('moved')), [...taker.unrestored()]], [2, true, []]);
    mkdirSync(join(scratch.path(`mount${count}`), 'folder'));
    writeFileSync(join(scratch.path(`mount${count}`), 'moved'), '');
    assert.deepEqual(await taker.take(both()), ['folder', 'moved']);
    assert.equal(existsSync(at('moved')), false);
    // In the midst of a change nobody may go on.
    assert.deepEqual(order, ['wait', 'let end', 'wait', 'go on']);
  });

  /** In place, by the same size, and with its time set back. */
  const rewrite = (file: string): void => {
    const { atime, mtime } = lstatSync(file);
    writeFileSync(file, 'anew');
    utimesSync(file, atime, mtime);
  };

  /** Of a file that somebody rewrites so in that moment: what has left, where it is then, and its content. */
  const rewrittenWhen = async (
    moment: 'calls are to wait' | 'names are dropped',
  ): Promise<readonly [taken: readonly string[], names: readonly string[], content: string]> => {
    writeFileSync(at('tagged'), 'once');
    const { atime } = lstatSync(at('tagged'));
    // A time of whole seconds, which can be set back exactly.
    utimesSync(at('tagged'), atime, new Date('2026-01-01'));
    const once = (): void => {
      const file = [at('tagged'), keptAt('tagged')].find(existsSync);
      if (file !== undefined && readFileSync(file, 'utf8') === 'once') rewrite(file);
    };
    told =
      moment === 'names are dropped'
        ? { dropNames: async () => once() }
        : { settleCalls: async () => once() };
    const taken = await giveUp('tagged');
    return [taken, await readdir(paths.upper), readFileSync(at('tagged'), 'utf8')];
  };

  it('stays when somebody rewrites it right before it leaves, though its size and time are the same', async () => {
    assert.deepEqual(await rewrittenWhen('calls are to wait'), [[], ['tagged'], 'anew']);
  });

  it('comes back when somebody who had it open does so right after it has left', async () => {
    assert.deepEqual(await rewrittenWhen('names are dropped'), [[], ['tagged'], 'anew']);
  });

  it('gets another name when it comes back and its own is taken, unless it has no data', async () => {
    assert.deepEqual(await namesAfterReturn(true), ['a.txt']);
    const names = await namesAfterReturn(false);
    assert.equal(names.length, 2);
    assert.equal(readFileSync(at(names.find((name) => name.includes('recovered')) ?? ''), 'utf8'), 'mine');
  });

  it('stays there though somebody writes to what has its name now', async () => {
    writeFileSync(at('a'), 'mine');
    await giveUp('a');
    const newer = openSync(join(scratch.path(`mount${count}`), 'a'), 'w');
    await rest();
    closeSync(newer);
    assert.deepEqual([existsSync(at('a')), readFileSync(keptAt('a'), 'utf8')], [false, 'mine']);
  });

  it('is at its place again when it cannot be noted that it is out', async () => {
    writeFileSync(at('a'), 'mine');
    meanwhile = () => {
      const [stage = ''] = existsSync(at('a')) ? [] : [join(paths.aside, `${clock.now()}-1`)];
      // Stands for a full disk.
      if (stage !== '') mkdirSync(join(stage, 'names.json.new', 'full'), { recursive: true });
    };
    await assert.rejects(giveUp('a'));
    assert.deepEqual([readFileSync(at('a'), 'utf8'), existsSync(keptAt('a'))], ['mine', false]);
  });

  it('is told as missing while it cannot come back, and comes back with the next call', async () => {
    writeFileSync(at('a'), 'mine');
    const away = `${paths.upper}-away`;
    meanwhile = () => {
      if (existsSync(paths.upper)) renameSync(paths.upper, away);
      throw new Error('the disk fails');
    };
    await assert.rejects(giveUp('a'), /the disk fails/);
    assert.deepEqual([...taker.unrestored()], ['a']);
    meanwhile = () => undefined;
    renameSync(away, paths.upper);
    await taker.take([]);
    assert.deepEqual([readFileSync(at('a'), 'utf8'), ...taker.unrestored()], ['mine']);
  });

  it('is told as one that may come back until its minute is over, also after a restart', async () => {
    writeFileSync(at('a'), 'mine');
    assert.deepEqual([...(await taker.resting())], []);
    await giveUp('a');
    assert.deepEqual([...(await taker.resting())], ['a']);
    taker = begin();
    assert.deepEqual([...(await taker.resting())], ['a']);
    await rest();
    assert.deepEqual([...(await taker.resting())], []);
  });

  it('stays, and the next start is not in the way of it, where the path would be too long or is taken', async () => {
    writeFileSync(at('a'), 'mine');
    await assert.rejects(giveUp('a', join(paths.discarded, 'n'.repeat(300))), {
      code: 'ENAMETOOLONG',
    });
    mkdirSync(join(paths.discarded, 'time'), { recursive: true });
    writeFileSync(keptAt('a'), 'of a former time');
    await assert.rejects(giveUp('a'), /exists already/);
    assert.equal((await leftAside(paths)).size, 0);
    assert.deepEqual(
      [readFileSync(at('a'), 'utf8'), readFileSync(keptAt('a'), 'utf8')],
      ['mine', 'of a former time'],
    );
  });

  it('is not forgotten where it cannot be found out who has it open: it is decided with the next call', async () => {
    for (const name of ['written', 'quiet']) writeFileSync(at(name), 'mine');
    for (const name of ['written', 'quiet']) await giveUp(name);
    await clock.advance(MINUTE);
    told = { processes: { run: () => Promise.reject(new Error('no answer')) } };
    await assert.rejects(taker.take([]), /no answer/);
    writeFileSync(keptAt('written'), 'more');
    told = {};
    await taker.take([]);
    assert.deepEqual([readFileSync(at('written'), 'utf8'), existsSync(at('quiet'))], ['more', false]);
    assert.deepEqual(await readdir(paths.aside), []);
  });

  describe('and a folder that users made', { skip: unlessRoot }, () => {
    const held = (): string => join(scratch.path(`mount${count}`), 'made');
    const isHiding = async (): Promise<boolean> =>
      (await runClient('getfattr', ['-n', 'trusted.overlay.opaque', at('made')])).output.includes('="y"');
    const show = (shownWith: readonly LeavingEntry[] = []): Promise<readonly string[]> =>
      taker.take([entryOf('made', { kind: 'folder', isOpaque: true, shownWith })]);
    let holder: number | undefined;
    beforeEach(async () => {
      for (const folder of [at('made'), held()]) mkdirSync(folder);
      await runClient('setfattr', ['-n', 'trusted.overlay.opaque', '-v', 'y', at('made')]);
      holder = undefined;
    });
    /** Somebody opens it while the NAS is asked. */
    const opened = async (): ReturnType<TakeOutOptions['listLower']> => {
      holder = openSync(held(), 'r');
      const here: RemoteEntry = { kind: 'folder', name: 'made' };
      return new Map([
        ['', [here]],
        ['made', []],
      ]);
    };
    const close = (): void => {
      if (holder !== undefined) closeSync(holder);
      holder = undefined;
    };

    it('shows what others have put into it', async () => {
      const theirs: RemoteEntry = { kind: 'file', name: 'theirs', version: { bytes: 1, modifiedMs: 1 } };
      const seen: string[] = [];
      told = {
        listLower: async () => {
          seen.push('asked');
          return new Map([
            ['', [{ kind: 'folder', name: 'made' }]],
            ['made', [theirs]],
          ]);
        },
        // What users make until they see it is over nothing.
        overNothing: (folders) => {
          seen.push(...folders);
          return () => void seen.push('end');
        },
        dropNames: async () => void seen.push('names dropped'),
      };
      assert.deepEqual([await show(), await isHiding()], [['made'], false]);
      assert.deepEqual(seen, ['made', 'asked', 'names dropped', 'names dropped', 'end']);
    });

    it('goes on hiding where something was deleted in it, or in a folder in it, since it was looked at', async () => {
      mkdirSync(at('made/sub'));
      for (const name of ['made/a', 'made/sub/a', 'made/sub/b']) writeFileSync(at(name), 'mine');
      const listed = async (): ReturnType<TakeOutOptions['listLower']> => {
        const listings = await opened();
        close();
        return listings;
      };
      const tried = async (then: Partial<TakeOutOptions>): Promise<unknown> => {
        told = { listLower: listed, ...then };
        return [await show([entryOf('made/sub', { kind: 'folder' })]), await isHiding()];
      };
      const deleted = (name: string) => async () => rmSync(at(name), { force: true });
      // What is deleted before the kernel looks at its mark again leaves no whiteout, and would come back.
      assert.deepEqual(await tried({ dropNames: deleted('made/sub/a') }), [[], true]);
      assert.deepEqual(await tried({ dropNames: deleted('made/a') }), [[], true]);
      const late = async (): ReturnType<TakeOutOptions['listLower']> => {
        await deleted('made/sub/b')();
        return listed();
      };
      assert.deepEqual(await tried({ listLower: late }), [[], true]);
      assert.deepEqual(await tried({}), [['made'], false]);
    });

    it('does not count as shown while somebody has it open who came before its mark was gone', async () => {
      told = { listLower: opened };
      assert.deepEqual([await show(), await isHiding()], [[], true]);
      close();
      told = {
        listLower: async () => {
          const listings = await opened();
          close();
          return listings;
        },
      };
      assert.deepEqual([await show(), await isHiding()], [['made'], false]);
    });

    it('shows all there is though somebody looked at it in the very moment in which names were dropped', async () => {
      let isKept = false;
      told = {
        listLower: opened,
        // As the kernel does it.
        dropNames: async () => {
          isKept = holder !== undefined;
          close();
        },
      };
      assert.deepEqual([await show(), isKept], [['made'], false]);
    });
  });

  it(
    'leaves a disk that is full, by a reserve; where there is none, no empty folder stays',
    { skip: unlessRoot },
    async (t) => {
      const disk = scratch.path('small');
      mkdirSync(disk);
      const { code } = await runClient('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'mountkeeper-test', disk]);
      assert.equal(code, 0);
      t.after(async () => detachAll((await mountsBelow(disk)).filter(({ fsType }) => fsType === 'tmpfs')));
      Object.assign(paths, layerPaths(disk));
      for (const folder of [paths.upper, paths.aside]) mkdirSync(folder, { recursive: true });
      writeFileSync(at('a'), 'mine');
      writeFileSync(at('b'), 'mine');
      await taker.take([]);
      const filler = openSync(join(disk, 'filler'), 'w');
      const fill = (): void => {
        for (const bytes of [1_048_576, 4_096])
          try {
            for (;;) writeSync(filler, Buffer.alloc(bytes, 1));
          } catch (error) {
            assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
          }
      };
      fill();
      assert.deepEqual(await giveUp('a'), ['a']);
      fill();
      await assert.rejects(giveUp('b'), { code: 'ENOSPC' });
      closeSync(filler);
      assert.deepEqual([existsSync(at('b')), (await readdir(paths.aside)).length], [true, 1]);
    },
  );
});
