import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { createClock } from 'mountkeeper';
import type { MountEntry } from 'mountkeeper';
import { PathCheck } from '../../../../plugins/mount/lifecycle/path-check.ts';
import { NOTHING_READ, withUploads } from '../../../../plugins/mount/layer/layer-figures.ts';
import { PLACEHOLDER_SOURCE } from '../../../../plugins/mount/layer/stack.ts';
import { FREEZE_SOURCE } from '../../../../plugins/mount/lifecycle/mount-point.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const entry = (source: string, fsType = 'fuse.rclone'): MountEntry => ({
  mountPoint: '/m/a',
  fsType,
  source,
  deviceMinor: 1,
  readOnly: false,
});

describe('a mount at its path', () => {
  let table: MountEntry[];
  let top: MountEntry | undefined;
  let lost: number;
  let make: (isThere: boolean) => () => Promise<string | undefined>;
  let look: () => Promise<string | undefined>;
  beforeEach(() => {
    table = [entry('mountkeeper:a')];
    lost = 0;
    top = undefined;
    const mountTable = {
      list: () => Promise.resolve(table),
      find: () => Promise.resolve(top ?? table.at(-1)),
    };
    make = (isThere) => {
      const check = new PathCheck({
        mountPoint: '/m/a',
        device: 'mountkeeper:a',
        mountTable,
        isThere,
        onLost: () => (lost += 1),
        log: collectLog().log,
      });
      return async () => {
        await check.check();
        return check.trouble;
      };
    };
    look = make(true);
  });

  it('is in order as long as it is the topmost, or the daemon itself covers it', async () => {
    assert.equal(await look(), undefined);
    table.push(entry(FREEZE_SOURCE, 'tmpfs'), entry(PLACEHOLDER_SOURCE, 'fuse'));
    assert.equal(await look(), undefined);
    assert.equal(lost, 0);
  });

  it('is covered by what lies over a folder above it, not by what the mounts on its way hide', async () => {
    const numbered = (id: number, parentId: number, mountPoint: string, source: string): MountEntry => ({
      ...entry(source),
      id,
      parentId,
      mountPoint,
    });
    const way = [
      numbered(1, 0, '/', 'root'),
      numbered(2, 1, '/m/a', 'hidden below the disk'),
      numbered(3, 1, '/m', 'disk'),
      numbered(4, 3, '/m/b', 'beside'),
      numbered(5, 3, '/m/a', 'mountkeeper:a'),
    ];
    const said = async (...over: readonly MountEntry[]): Promise<string | undefined> => {
      table = [...way, ...over];
      // The topmost by the kernel's own order, as the real table finds it.
      top = way.at(-1);
      return look();
    };
    assert.equal(await said(), undefined);
    assert.equal(await said(numbered(6, 4, '/m/b/c', 'x'), numbered(7, 5, '/m/a/in', 'x')), undefined);
    const cover = /something else \(fuse\.rclone, usb\) is mounted over (\S+), above it/;
    assert.equal(cover.exec((await said(numbered(6, 3, '/m', 'usb'))) ?? '')?.[1], '/m');
    assert.equal(cover.exec((await said(numbered(6, 1, '/', 'usb'))) ?? '')?.[1], '/');
  });

  it('is lost when it is missing three times in a row, and that is told once', async () => {
    table = [];
    await look();
    table = [entry('mountkeeper:a')];
    await look();
    table = [entry('other', 'ext4')];
    await look();
    await look();
    assert.equal(lost, 0);
    for (let index = 0; index < 3; index += 1) await look();
    assert.equal(lost, 1);
  });

  it('is told of when it was missing twice: by its path users come to something else', async () => {
    const said: unknown[] = [];
    for (const entries of [[], [entry('mountkeeper:a')], [], [entry('other', 'ext4')]]) {
      table = entries;
      said.push(await look());
    }
    const missing = 'the share is not mounted at its path any more';
    assert.deepEqual(said, [undefined, undefined, undefined, missing]);
    const shown = withUploads(
      NOTHING_READ,
      {
        lookedAtMs: 0,
        dirtyFiles: 0,
        dirtyBytes: 0,
        stuckFiles: 0,
        uploading: 0,
        uploadedBytes: 0,
        localBytes: 0,
      },
      { inTheWay: missing, uploadSpeed: 0 },
    );
    assert.deepEqual([shown.isHidden, shown.trouble], [true, missing]);
  });

  it('is not lost before it was moved there', async () => {
    look = make(false);
    table = [];
    for (let index = 0; index < 3; index += 1) await look();
    table = [entry('mountkeeper:a')];
    await look();
    assert.equal(lost, 0);
    table = [];
    for (let index = 0; index < 3; index += 1) await look();
    assert.equal(lost, 1);
  });

  it('leaves a line in the log when nobody could be told', async () => {
    const { log, entries } = collectLog();
    const end = new AbortController();
    const broken = (): never => {
      end.abort();
      throw new Error('nobody is told');
    };
    const gone = { list: () => Promise.resolve([]), find: () => Promise.resolve(undefined) };
    const at = { mountPoint: '/m/a', device: 'mountkeeper:a', mountTable: gone, isThere: true };
    const check = new PathCheck({ ...at, onLost: broken, log });
    for (let index = 0; index < 2; index += 1) await check.check();
    await check.run(createClock(), end.signal);
    assert.deepEqual(
      entries.map(({ attempt, mountPoint, err }) => [attempt, mountPoint, (err as Error).message]),
      [['check the path of a mount', '/m/a', 'nobody is told']],
    );
  });

  it('says what was mounted over it', async () => {
    table.push(entry('none', 'tmpfs'));
    assert.match((await look()) ?? '', /tmpfs, none.*unmount/);
    assert.equal(lost, 0);
  });
});
