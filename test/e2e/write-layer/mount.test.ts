/** A share with a write layer, mounted for real; what brings it to the NAS is played by the test. */
import assert from 'node:assert/strict';
import { existsSync, lstatSync, renameSync } from 'node:fs';
import { chown, mkdir, open, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Mount, RemoteFiles, UpperEntry, WriteLayer } from 'mountkeeper';
import { leftAside, recoverAside } from '../../../plugins/mount/layer/upper/set-aside.ts';
import { TakeOut } from '../../../plugins/mount/layer/upper/take-out.ts';
import type { TakeOutOptions } from '../../../plugins/mount/layer/upper/take-out.ts';
import { moveThenDropNames } from '../../../plugins/mount/layer/overlay.ts';
import { layerPaths } from '../../../plugins/mount/layer/paths.ts';
import { UpperMarks } from '../../../plugins/mount/layer/upper/overlay-attributes.ts';
import { LayerWorkbench } from '../../support/write-layer/workbench.ts';
import { upperEntry } from '../../support/write-layer/upper-entry.ts';
import type { Workbench } from '../../support/mount/workbench.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import type { Nas } from '../../support/nas/nas.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const { clock } = LayerWorkbench;

/** As the share does it, and without dropping names. */
function renamed(upper: string, moves: Parameters<TakeOutOptions['moveAside']>[0]): readonly bigint[] {
  for (const { path, to } of moves) renameSync(join(upper, path), to);
  return moves.map(({ to }) => lstatSync(to, { bigint: true }).ctimeNs);
}

describe('a share with a write layer', () => {
  let house: LayerWorkbench;
  let scratch: Scratch;
  let nas: Nas;
  let bench: Workbench;
  let mount: Mount;
  let root: string;
  let layer: WriteLayer;
  let remote: RemoteFiles;

  const signal = (): AbortSignal => house.signal();
  const sh = (script: string): Promise<string> => house.sh(script);
  const bringUp = (path: string): Promise<void> => house.bringUp(path);
  const entry = (path: string): Promise<UpperEntry> => upperEntry(layer.upper, path);
  const below = async (path: string) => (await layer.below([path], { signal: signal() })).found.get(path);
  const listBelow = async (folder: string) =>
    (await layer.listBelow([folder], { signal: signal() })).found.get(folder);
  const bytesBelow = async (path: string): Promise<number | undefined> => {
    const found = await below(path);
    return found?.kind === 'file' ? found.version.bytes : undefined;
  };
  before(async () => {
    house = await LayerWorkbench.create({
      one: 100_000,
      gone: 3_000,
      'tree/two': 2_000,
      'tree/sub/three': 3_000,
      'old/x': 10,
      'deep/in/z': 9,
      others: 5_000,
      'moment/gone': 50,
    });
    ({ scratch, nas, bench, mount, root, layer, remote } = house);
  });
  after(() => scratch.close());

  it('takes what is written into the upper folder, and the NAS has nothing of it', async () => {
    await sh(
      'printf hello > new; printf more >> one; mv tree moved; rm moved/two gone; ' +
        'mv deep/in deep/out; rm -r old; mkdir old; printf y > old/y',
    );
    assert.equal(await sh('cat new'), 'hello');
    assert.deepEqual((await readdir(layer.upper)).sort(), [
      'deep',
      'gone',
      'moved',
      'new',
      'old',
      'one',
      'tree',
    ]);
    assert.equal(await nas.has('new'), false);
    assert.equal((await stat(nas.path('one'))).size, 100_000);
  });

  it('tells what lies below, whatever the upper folder makes of it', async () => {
    assert.equal(await bytesBelow('one'), 100_000);
    assert.equal(await below('new'), undefined);
    assert.equal(await bytesBelow('gone'), 3_000);
    assert.equal(await bytesBelow('tree/sub/three'), 3_000);
    assert.equal(await bytesBelow('old/x'), 10);
    assert.equal(await below('nothing/there'), undefined);
    const names = (await listBelow('tree'))?.map(({ name, kind }) => `${kind} ${name}`);
    assert.deepEqual(names?.sort(), ['file two', 'folder sub']);
    assert.equal(await listBelow('moved'), undefined);
  });

  it('tells who has a file open for writing', async () => {
    const holder = runClient('sh', ['-c', `exec 3>>"${root}/new" 4<"${root}/one"; sleep 3`]);
    await until('new is open for writing', async () => (await layer.openForWriting()).has('new'), {
      timeoutMs: 3_000,
      everyMs: 20,
    });
    assert.equal((await layer.openForWriting()).has('one'), false);
    await holder;
    assert.deepEqual([...(await layer.openForWriting())], []);
  });

  it('shows a file that appears on the NAS under a name that was missing before', async () => {
    assert.equal(await sh('cat later 2>/dev/null || echo none'), 'none');
    await nas.put('later', 12);
    await mount.refreshDirectories('', { recursive: false, signal: signal() });
    assert.equal(await sh('wc -c < later'), '12');
  });

  it('shows an entry no more, by any name that the kernel has kept, once it was moved aside', async () => {
    await sh(`printf here > shown; cat shown; ln -s '${nas.path('')}' linked`);
    const to = join(layer.aside, 'shown');
    const spec = { exec: false, readOnly: false };
    const told = await moveThenDropNames(
      [
        { path: 'shown', to },
        { path: 'linked/others', to: `${to}-stolen` },
        { path: 'shown-not', to },
      ],
      { upper: layer.upper, mountPoint: root, spec },
      bench.tools,
    );
    assert.deepEqual(told, {
      moved: [lstatSync(to, { bigint: true }).ctimeNs, undefined, undefined],
      isDropped: ['x64', 'arm64'].includes(process.arch),
    });
    await sh('test ! -e shown && printf new > shown && rm shown linked');
    assert.ok(await nas.has('others'), 'no symlink leads out of the upper folder');
    await rm(to);
  });

  it('copies up the whole of a file that has just been changed on the NAS', async () => {
    await sh('cat others > /dev/null; ls -l others');
    await writeFile(nas.path('others'), 'n'.repeat(9_000));
    await mount.refreshDirectories('', { recursive: false, signal: signal() });
    await sh('printf end >> others');
    assert.equal(await readFile(join(layer.upper, 'others'), 'utf8'), `${'n'.repeat(9_000)}end`);
  });

  it('tells what users may have seen when they changed it in the moment in which its listing was read', async () => {
    const held = (name: string): unknown => {
      const found = layer.held?.(`moment/${name}`);
      return found?.kind === 'file' ? found.version.bytes : found;
    };
    const readings: readonly (() => Promise<unknown>)[] = [
      () => mount.refreshDirectories('moment', { recursive: false, signal: signal() }),
      () => mount.refreshDirectories('', { recursive: true, signal: signal() }),
      () => remote.forget(['moment'], { signal: signal() }),
    ];
    for (const [turn, read] of readings.entries()) {
      const bytes = turn === 0 ? 50 : 100 + turn - 1;
      assert.equal(await bytesBelow('moment/gone'), bytes);
      // What no look of an uploader has seen when the listing is read.
      await sh(
        turn === 0 ? 'rm moment/gone; printf mine > moment/made0' : `printf mine > moment/made${turn}`,
      );
      await nas.put('moment/gone', 100 + turn);
      await nas.put(`moment/made${turn}`, 7);
      await read();
      assert.equal(await bytesBelow('moment/gone'), 100 + turn, 'below, the other version shows');
      assert.equal(await bytesBelow(`moment/made${turn}`), 7);
      assert.deepEqual([held('gone'), held(`made${turn}`)], [bytes, null]);
      await clock.sleep(5);
      layer.learnt?.(clock.now());
      assert.deepEqual([held('gone'), held(`made${turn}`)], [undefined, undefined], 'all is on record');
    }
  });

  describe('whose upper folder is cleaned of what the NAS has', () => {
    it('keeps a file that differs on the NAS, is open, or was changed since the scan', async () => {
      const one = await entry('one');
      assert.deepEqual(await layer.takeOut([one]), [], 'the NAS has the former version');
      await bringUp('new');
      const seen = await entry('new');
      const holder = runClient('sh', ['-c', `exec 3<"${root}/new"; sleep 2`]);
      await until(
        'new is held',
        async () => (await sh('cat new')) === 'hello' && (await layer.takeOut([seen])).length === 0,
        { timeoutMs: 5_000 },
      );
      await holder;
      await sh('printf "hello again" > new');
      assert.deepEqual(await layer.takeOut([seen]), [], 'it was changed');
      assert.equal(await sh('cat new'), 'hello again');
    });

    it("drops a file that the NAS has: users see the NAS's version and may write again", async () => {
      await bringUp('new');
      assert.deepEqual(await layer.takeOut([await entry('new')]), ['new']);
      assert.deepEqual((await readdir(layer.upper)).includes('new'), false);
      assert.equal(await sh('cat new'), 'hello again');
      await sh('printf more >> new');
      assert.equal(await readFile(join(layer.upper, 'new'), 'utf8'), 'hello againmore');
    });

    it('drops the mark of a deletion once the NAS has done it', async () => {
      assert.deepEqual(await layer.takeOut([await entry('gone')]), [], 'the NAS still has it');
      await remote.deleteFile('gone', { signal: signal() });
      assert.deepEqual(await layer.takeOut([await entry('gone')]), ['gone']);
      await nas.put('gone', 7);
      await mount.refreshDirectories('', { recursive: false, signal: signal() });
      assert.equal(await sh('wc -c < gone'), '7', 'somebody else may have the name again');
    });

    /** Moved on the NAS, and told to the overlay. */
    const movedThere = async (path: string, nowAt: string): Promise<readonly string[]> =>
      layer.takeOut([{ ...(await entry(path)), nowAt }]);
    const markOf = async (path: string): Promise<string | undefined> => (await entry(path)).movedFrom;

    it('rewrites the mark of a folder that was moved on the NAS, and never removes it', async () => {
      await remote.deleteFile('tree/two', { signal: signal() });
      await remote.moveFolder('tree', 'moved', { signal: signal() });
      assert.deepEqual(await movedThere('moved', 'moved'), ['moved']);
      assert.equal(await markOf('moved'), '/moved');
      assert.deepEqual(await layer.takeOut([await entry('tree')]), ['tree']);
      assert.deepEqual(
        (await sh('ls; ls moved'))
          .split('\n')
          .filter((name) => ['tree', 'moved', 'sub', 'two'].includes(name)),
        ['moved', 'sub'],
      );
      assert.equal(await sh('wc -c < moved/sub/three'), '3000');
      await remote.moveFolder('deep/in', 'deep/out', { signal: signal() });
      assert.deepEqual(await movedThere('deep/out', 'deep/out'), ['deep/out']);
      assert.equal(await sh('wc -c < deep/out/z'), '9');
      assert.deepEqual(await layer.takeOut([await entry('moved/two')]), ['moved/two']);
      // Moved once more, to another parent: whatever overlayfs had in mind, what lies below it is to be seen.
      await sh('mv moved deep/moved');
      assert.equal(
        await sh('wc -c < deep/moved/sub/three; mv deep/moved moved; wc -c < moved/sub/three'),
        '3000\n3000',
      );
      assert.deepEqual(
        await layer.takeOut([await entry('deep/out'), await entry('moved')]),
        [],
        'folders stay',
      );
    });

    it('keeps the mark of what is no more at its path, and renews it where users have it by now', async () => {
      const seen = await entry('deep/out');
      await sh('mv deep/out deep/there');
      assert.deepEqual(await layer.takeOut([{ ...seen, nowAt: 'deep/out' }]), []);
      assert.deepEqual(await layer.takeOut([{ ...seen, path: 'deep/there', nowAt: 'deep/out' }]), [
        'deep/there',
      ]);
      assert.equal(await sh('cat deep/there/z | wc -c'), '9');
      await remote.moveFolder('deep/out', 'deep/there', { signal: signal() });
      assert.deepEqual(await movedThere('deep/there', 'deep/there'), ['deep/there']);
      assert.equal(await sh('cat deep/there/z | wc -c'), '9');
    });

    it('drops a folder that replaced another of its name', async () => {
      await remote.deleteFile('old/x', { signal: signal() });
      await bringUp('old/y');
      assert.deepEqual(await layer.takeOut([await entry('old')]), ['old']);
      assert.deepEqual(await layer.takeOut([await entry('old/y')]), ['old/y']);
      assert.equal((await entry('old')).isOpaque, false);
      assert.equal(await sh('ls old; cat old/y'), 'y\ny');
    });

    it('keeps what would vanish for a process whose working folder it is', async () => {
      await sh('mkdir stood; printf s > stood/s');
      await remote.makeFolder('stood', { signal: signal() });
      await bringUp('stood/s');
      const there = runClient('sh', ['-c', `cd "${root}/stood" && sleep 2 && cat s`]);
      await until('somebody stands in it', async () => (await layer.inUse()).has('stood'), {
        timeoutMs: 2_000,
      });
      assert.deepEqual(await layer.takeOut([await entry('stood')]), []);
      await layer.takeOut([await entry('stood/s')]);
      assert.equal((await there).output, 's');
    });

    it('keeps a file that is held open through a name which is gone, or mapped', async () => {
      await sh('printf held > held');
      await bringUp('held');
      const holder = runClient('perl', [
        '-e',
        `open(my $f, '+<', '${root}/held') or die; sleep 2; syswrite($f, 'HELD'); close $f`,
      ]);
      await until('it is open', async () => (await layer.openForWriting()).has('held'), { timeoutMs: 2_000 });
      assert.deepEqual(await layer.takeOut([await entry('held')]), []);
      await holder;
      assert.equal(await sh('cat held'), 'HELD');
    });

    it('restores what is written while the kernel still has the old name in its cache', async () => {
      const paths = layerPaths(join(scratch.path('bench'), 'cache/s'));
      /** False when the kernel had dropped the name by itself: then the file was copied up anew. */
      const isRestored = async (name: string): Promise<boolean> => {
        await sh(`printf version1 > ${name}; cat ${name}`);
        await bringUp(name);
        let hadName = false;
        const options: TakeOutOptions = {
          paths,
          mountPoint: root,
          marks: new UpperMarks(paths.upper, bench.tools.processes),
          processes: bench.tools.processes,
          clock,
          log: bench.tools.log,
          precisionMs: () => 1_000,
          isCached: () => false,
          listLower: async (folders) => (await layer.listBelow(folders, { signal: signal() })).found,
          forget: (folders) => remote.forget(folders, { signal: signal() }),
          overNothing: () => () => undefined,
          moveAside: async (moves) => {
            const moved = renamed(paths.upper, moves);
            await sh(`printf version2 > ${name}`);
            hadName = !existsSync(join(layer.upper, name));
            return moved;
          },
          dropNames: async () =>
            void (await mount.refreshDirectories('', { recursive: false, signal: signal() })),
        };
        await remote.forget([''], { signal: signal() });
        // The upload has had names dropped.
        await sh(`cat ${name}`);
        assert.deepEqual(await new TakeOut(options).take([await entry(name)]), hadName ? [] : [name]);
        assert.equal(await sh(`cat ${name}`), 'version2');
        assert.equal(await readFile(join(layer.upper, name), 'utf8'), 'version2');
        return hadName;
      };
      let isShown = false;
      for (let round = 1; !isShown && round <= 12; round += 1) isShown = await isRestored(`busy${round}`);
      assert.ok(isShown, 'the kernel kept no name');
    });

    it('restores all of it when the NAS falls silent meanwhile, so that users see one of the two', async () => {
      const paths = layerPaths(join(scratch.path('bench'), 'cache/s'));
      await sh('mv others renamed');
      await remote.moveFile('others', 'renamed', { signal: signal() });
      const options: TakeOutOptions = {
        paths,
        mountPoint: root,
        marks: new UpperMarks(paths.upper, bench.tools.processes),
        processes: bench.tools.processes,
        clock,
        log: bench.tools.log,
        precisionMs: () => 1_000,
        isCached: () => false,
        listLower: async (folders) => (await layer.listBelow(folders, { signal: signal() })).found,
        forget: () => Promise.reject(new Error('the NAS does not answer')),
        overNothing: () => () => undefined,
        moveAside: async (moves) => renamed(paths.upper, moves),
        dropNames: async () =>
          void (await mount.refreshDirectories('', { recursive: false, signal: signal() })),
      };
      const seen = { ...(await entry('renamed')), hasNoData: true, movedFrom: 'others' };
      await assert.rejects(new TakeOut(options).take([seen]), /does not answer/);
      assert.equal((await entry('renamed')).inode, seen.inode);
      assert.deepEqual(
        await layer.takeOut([{ ...(await entry('renamed')), hasNoData: true, movedFrom: 'others' }]),
        ['renamed'],
      );
      assert.equal(await sh('wc -c < renamed'), '9000');
    });

    it('keeps what is given up where it is told, also over a kill, and restores what was half-way', async () => {
      const paths = layerPaths(join(scratch.path('bench'), 'cache/s'));
      const keptAt = join(paths.discarded, 'at', 'unwanted');
      await sh('printf mine > unwanted; cat unwanted');
      const leaving = { ...(await entry('unwanted')), theirs: {}, discardTo: keptAt };
      assert.deepEqual(await layer.takeOut([leaving]), ['unwanted']);
      assert.equal(await sh('cat unwanted 2>/dev/null || echo none'), 'none');
      assert.equal(await readFile(keptAt, 'utf8'), 'mine');
      // Others rest there, too.
      const stage = [...(await leftAside(paths))].find(([, [left]]) => left?.aside === keptAt)?.[0] ?? 'none';
      await chown(keptAt, 1_000, 1_000);
      assert.equal(await recoverAside(paths, bench.tools.log), 0, 'a killed daemon leaves it there');
      assert.equal(await readFile(keptAt, 'utf8'), 'mine');
      await mkdir(stage);
      await writeFile(join(stage, 'names.json'), JSON.stringify([{ path: 'unwanted', keptAt }]));
      assert.equal(await recoverAside(paths, bench.tools.log), 1, 'it was not done');
      assert.equal(await readFile(join(paths.upper, 'unwanted'), 'utf8'), 'mine');
      await mount.refreshDirectories('', { recursive: false, signal: signal() });
      await sh('rm unwanted');
    });

    it('restores what a killed daemon was moving, also while the overlay is still mounted', async () => {
      const paths = layerPaths(join(scratch.path('bench'), 'cache/s'));
      await sh('printf half > half-way; printf out > all-out; cat half-way all-out');
      // Whoever has the file open keeps its name in the kernel's mind, whatever else wants the memory.
      const holder = await open(join(root, 'all-out'));
      const stage = join(paths.aside, '2-1');
      await mkdir(stage, { recursive: true });
      await rename(join(paths.upper, 'half-way'), join(stage, '0'));
      await rename(join(paths.upper, 'all-out'), join(stage, '1'));
      const { ctimeNs } = await stat(join(stage, '1'), { bigint: true });
      await writeFile(
        join(stage, 'names.json'),
        JSON.stringify([{ path: 'half-way' }, { path: 'all-out', changedNs: String(ctimeNs) }]),
      );
      assert.equal(await recoverAside(paths, bench.tools.log, { isLive: true }), 1);
      assert.equal(await readFile(join(paths.upper, 'half-way'), 'utf8'), 'half');
      assert.equal(
        await readFile(join(stage, '1'), 'utf8'),
        'out',
        'somebody may still write through the name that the kernel keeps',
      );
      await sh('printf more >> all-out');
      assert.equal(await recoverAside(paths, bench.tools.log, { isLive: true }), 1, 'as here');
      assert.equal(await sh('cat all-out'), 'outmore');
      await holder.close();
    });

    it('restores what a killed daemon was moving', async () => {
      const paths = layerPaths(join(scratch.path('bench'), 'cache/s'));
      await sh('printf mine > halfway; printf other > both');
      const stage = join(paths.aside, '1-1');
      await mkdir(stage, { recursive: true });
      await writeFile(
        join(stage, 'names.json'),
        JSON.stringify([{ path: 'halfway' }, { path: 'both' }, { path: 'never/moved' }]),
      );
      await rename(join(paths.upper, 'halfway'), join(stage, '0'));
      await writeFile(join(stage, '1'), 'aside');
      assert.equal(await recoverAside(paths, bench.tools.log), 2);
      assert.equal(await readFile(join(paths.upper, 'halfway'), 'utf8'), 'mine');
      assert.equal(await readFile(join(paths.upper, 'both'), 'utf8'), 'other');
      const recovered = (await readdir(paths.upper)).filter((name) => name.startsWith('both (recovered'));
      assert.equal(await readFile(join(paths.upper, recovered[0] ?? ''), 'utf8'), 'aside');
      await Promise.all(recovered.map((name) => rm(join(paths.upper, name))));
      assert.deepEqual(
        (await readdir(paths.upper)).filter((name) => ['tree', 'gone', 'busy '].includes(name)),
        [],
        'what had been taken out stays out',
      );
    });
  });

  it('refuses new writes when it is frozen, also after names were dropped', async () => {
    await mount.freeze();
    await mount.refreshDirectories('', { recursive: false, signal: signal() });
    const { code } = await runClient('sh', ['-c', `echo x > "${root}/frozen"`]);
    assert.notEqual(code, 0);
    await mount.unmount();
    assert.equal(await bench.tools.mountTable.find(root), undefined);
    assert.deepEqual(
      (await bench.tools.mountTable.list()).filter((one) => one.mountPoint.startsWith(scratch.root)),
      [],
    );
  });
});
