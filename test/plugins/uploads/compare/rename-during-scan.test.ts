/**
 * A look at the upper folder takes its time, and users rename files meanwhile: a look that shows a file
 * neither by its former name nor by its later one must not delete or replace what the NAS has of it, for that
 * is all there is. On a real overlay.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Clock, Processes } from 'mountkeeper';
import { NOTHING_READ, withUploads } from '../../../../plugins/mount/layer/layer-figures.ts';
import { clock, processes, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

describe('a look during which files are renamed', () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    for (const path of ['a', 'f/x', 'f/y']) {
      mkdirSync(join(share.nas, path, '..'), { recursive: true });
      writeFileSync(join(share.nas, path), `first ${path}`);
    }
    share.up();
    // Both folders are in the upper folder already.
    writeFileSync(share.at('f/own'), 'own');
  });
  afterEach(() => share.close());

  /** The first look from when `isDue` on reads the root, then users act, then it reads the folder `f`. */
  const torn = (act: () => void, isDue = (): boolean => true): Pick<Processes, 'run'> => {
    let isDone = false;
    return {
      run: async (spec) => {
        const isLook = spec.command === 'find' && spec.args?.includes('-type') !== true;
        if (!isLook || isDone || !isDue()) return processes.run(spec);
        isDone = true;
        const before = await processes.run(spec);
        act();
        const after = await processes.run(spec);
        const isInF = (line: string): boolean => /^\S+ \S+ \S+ \S+ \S+ f(\/|$)/.test(line);
        const [early, late] = [before, after].map(({ stdout }) =>
          stdout.split('\0').filter((line) => line !== ''),
        );
        const lines = [...early!.filter((line) => !isInF(line)), ...late!.filter(isInF)];
        return { ...after, stdout: lines.map((line) => `${line}\0`).join('') };
      },
    };
  };
  const run = async (act: () => void): Promise<void> => {
    const uploader = share.uploader(undefined, { processes: torn(act) });
    try {
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.deepEqual(share.conflicts, []);
    await share.renew();
    assert.deepEqual(treeOf(share.mount), treeOf(share.nas));
  };

  it('does not say that nothing waits when it has seen a new file by none of its names', async () => {
    let isDue = false;
    const act = (): void => renameSync(share.at('f/new'), share.at('new'));
    const uploader = share.uploader(undefined, { processes: torn(act, () => isDue) });
    try {
      await settle(uploader);
      writeFileSync(share.at('f/new'), 'new');
      isDue = true;
      const figures = await uploader.look(new AbortController().signal);
      assert.equal(existsSync(join(share.nas, 'new')), false);
      assert.deepEqual([figures.dirtyFiles, figures.isTorn], [0, true]);
      assert.equal(
        withUploads(NOTHING_READ, figures, { inTheWay: undefined, uploadSpeed: 0 }).uploading,
        true,
      );
      await settle(uploader);
      assert.equal((await uploader.look(new AbortController().signal)).isTorn, undefined);
    } finally {
      await uploader.stop();
    }
    assert.equal(readFileSync(join(share.nas, 'new'), 'utf8'), 'new');
  });

  it('deletes nothing that was renamed, and is being copied up whenever it is looked at', async () => {
    renameSync(share.at('a'), share.at('b'));
    const uploader = share.uploader(undefined, {
      processes: {
        run: async (spec) => {
          const result = await processes.run(spec);
          // As the kernel does while it copies: the time of change is another one at each moment.
          if (spec.command === 'find') chmodSync(join(share.upper, 'b'), 0o644);
          return result;
        },
      },
    });
    try {
      for (let round = 0; round < 6; round += 1) {
        uploader.flush();
        await uploader.look(new AbortController().signal);
        await uploader.settled();
      }
      assert.deepEqual(
        ['a', 'b'].filter((name) => existsSync(join(share.nas, name))),
        ['b'],
      );
    } finally {
      await uploader.stop();
    }
    assert.equal(readFileSync(join(share.nas, 'b'), 'utf8'), 'first a');
  });

  it('deletes nothing that one look has missed, however many such looks there were before', async () => {
    let [isChurning, isDue, aheadMs] = [true, false, 0];
    const { run: runTorn } = torn(
      () => renameSync(share.at('f/x'), share.at('moved')),
      () => isDue,
    );
    const uploader = share.uploader(undefined, {
      clock: Object.assign(Object.create(clock) as Clock, { monotonic: () => clock.monotonic() + aheadMs }),
      processes: {
        run: async (spec) => {
          const result = await runTorn(spec);
          // Somebody's lock files come and go: no look is whole.
          if (isChurning && spec.command === 'find') mkdirSync(join(share.upper, 'lock'));
          if (isChurning && spec.command === 'find') rmdirSync(join(share.upper, 'lock'));
          return result;
        },
      },
    });
    const look = async (): Promise<void> => {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
      aheadMs += 4_000;
    };
    try {
      rmSync(share.at('f/y'));
      for (let looks = 0; looks < 15; looks += 1) await look();
      assert.ok(existsSync(join(share.nas, 'f/y')), 'it waits for a whole look');
      for (let looks = 0; looks < 15; looks += 1) await look();
      assert.equal(existsSync(join(share.nas, 'f/y')), false, 'it goes by many looks');
      isDue = true;
      await look();
      assert.ok(existsSync(join(share.nas, 'f/x')), 'one look tells nothing');
      isChurning = false;
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    assert.equal(readFileSync(join(share.nas, 'moved'), 'utf8'), 'first f/x');
  });

  it('replaces nothing that others saved after a new file was seen first, where a look misses its folder', async () => {
    mkdirSync(join(share.nas, 'f/p'));
    const path = 'f/p/new';
    let [isDue, open] = [false, new Set([path])];
    const act = (): void => renameSync(share.at('f/p'), share.at('p'));
    const uploader = share.uploader(undefined, {
      isOpen: () => open,
      processes: torn(act, () => isDue),
    });
    const look = async (): Promise<void> => {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
    };
    try {
      writeFileSync(share.at(path), 'mine');
      await look();
      share.othersWrite(path, 'of others');
      isDue = true;
      await look();
      open = new Set();
      await settle(uploader);
    } finally {
      await uploader.stop();
    }
    const contents = [...treeOf(share.nas)]
      .filter(([name]) => /new/.test(name))
      .map(([, content]) => content);
    assert.deepEqual(contents.sort(), ['mine', 'of others']);
    assert.equal(share.conflicts.length, 1);
  });

  it('deletes nothing that was renamed out of a folder', async () => {
    await run(() => renameSync(share.at('f/x'), share.at('moved')));
    assert.equal(readFileSync(join(share.nas, 'moved'), 'utf8'), 'first f/x');
  });

  it('deletes nothing that was renamed over another file', async () => {
    await run(() => renameSync(share.at('f/x'), share.at('a')));
    assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'first f/x');
  });

  it('replaces nothing that was renamed while something new was put in its place', async () => {
    await run(() => {
      renameSync(share.at('f/x'), share.at('moved'));
      writeFileSync(share.at('f/x'), 'new');
    });
    assert.equal(readFileSync(join(share.nas, 'moved'), 'utf8'), 'first f/x');
    assert.equal(readFileSync(join(share.nas, 'f/x'), 'utf8'), 'new');
  });

  it('deletes nothing that was renamed while another file was renamed over it', async () => {
    await run(() => {
      renameSync(share.at('f/x'), share.at('moved'));
      renameSync(share.at('f/y'), share.at('f/x'));
    });
    assert.equal(readFileSync(join(share.nas, 'moved'), 'utf8'), 'first f/x');
    assert.equal(readFileSync(join(share.nas, 'f/x'), 'utf8'), 'first f/y');
  });
});
