import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Config, Processes, Uploader } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { runShortCommand } from '../../../../core/platform/processes/short-command.ts';
import { settleIdentity } from '../../../../plugins/mount/cache/identity.ts';
import { treesOf } from '../../../../plugins/mount/cache/metadata.ts';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';
import { clearFormerLayer, removeLayer } from '../../../../plugins/mount/layer/remove-layer.ts';
import {
  beginReadOnlyCache,
  chooseWay,
  isLayerDue,
  isReadOnlyCache,
} from '../../../../plugins/mount/layer/write-way.ts';
import type { WriteWay } from '../../../../plugins/mount/layer/write-way.ts';
import { dropTorn } from '../../../../plugins/mount/recovery/repair.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

/** Maps a file for writing, closes it, tells that, and waits for the end of its input. */
const MAP = `
use POSIX; $| = 1;
open(my $file, "+<", $ARGV[0]) or die;
syscall((POSIX::uname())[4] eq "aarch64" ? 222 : 9, 0, 4096, 3, 1, fileno($file), 0) != -1 or die;
close($file); print "mapped"; <STDIN>;`;

describe('the way in which a share writes', () => {
  let root: string;
  let cache: string;
  let isLayered: boolean;
  /** Files that the uploader finds waiting. */
  let written: number;
  const { log } = collectLog();
  const tools = {
    processes: {
      run: (spec) => runShortCommand(spec, createClock()),
    } as Processes,
    config: () => ({ mount: { write_layer: isLayered } }) as unknown as Config,
    uploader: () =>
      ({
        waiting: async () => ({ count: written, bytes: written, paths: [] }),
      }) as unknown as Uploader,
  };
  const put = async (file: string, content: string): Promise<void> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  };
  const cached = async (path: string, meta: string): Promise<void> => {
    const { data, meta: records } = treesOf(cache);
    await put(join(data, path), '12345');
    await put(join(records, path), meta);
  };
  const META = {
    Size: 5,
    Rs: [{ Pos: 0, Size: 5 }],
    Fingerprint: '',
    ModTime: '',
    ATime: '',
  };
  const dirty = (path: string): Promise<void> => cached(path, JSON.stringify({ ...META, Dirty: true }));
  const clean = (path: string): Promise<void> => cached(path, JSON.stringify({ ...META, Dirty: false }));
  const inUpper = (path: string): Promise<void> => put(join(layerPaths(cache).upper, path), 'x');
  const chosen = (): Promise<WriteWay> => chooseWay(cache, log, tools);

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-way-'));
    cache = join(root, 'photos');
    await mkdir(cache);
    isLayered = true;
    written = 0;
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('is the one that is set, when nothing waits', async () => {
    await clean('a');
    await inUpper('a');
    assert.equal(await chosen(), 'layer');
    isLayered = false;
    assert.equal(await chosen(), 'cache');
  });

  it('is the one in which the files that wait were written', async () => {
    await dirty('a');
    assert.equal(await chosen(), 'cache');
    assert.equal(await isLayerDue(cache, tools), false, "rclone's cache needs the remote to start");
    await clean('a');
    await inUpper('b');
    written = 1;
    isLayered = false;
    assert.equal(await chosen(), 'layer');
    assert.equal(await isLayerDue(cache, tools), true);
  });

  it('is the layer while a program writes to a file of it, open or mapped, through whatever mount', async () => {
    await inUpper('a');
    await inUpper('b');
    isLayered = false;
    const file = await open(join(layerPaths(cache).upper, 'a'), 'a');
    assert.equal(await chosen(), 'layer');
    assert.equal(await isLayerDue(cache, tools), true);
    await file.close();
    const reader = await open(join(layerPaths(cache).upper, 'a'), 'r');
    assert.equal(await chosen(), 'cache', 'who only reads loses nothing');
    await reader.close();
    const mapper = spawn('perl', ['-e', MAP, join(layerPaths(cache).upper, 'b')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(mapper.stdout, 'data');
    assert.equal(await chosen(), 'layer');
    mapper.stdin.end();
    await once(mapper, 'exit');
    assert.equal(await chosen(), 'cache');
  });

  it('keeps what was taken out of the layer for as long as a program writes to it', async () => {
    const aside = join(layerPaths(cache).aside, 'one');
    await put(join(aside, '0'), 'uploaded');
    const { ctimeNs } = await stat(join(aside, '0'), { bigint: true });
    await put(join(aside, 'names.json'), JSON.stringify([{ path: 'c', changedNs: String(ctimeNs) }]));
    const file = await open(join(aside, '0'), 'a');
    await chosen();
    assert.ok(existsSync(join(aside, '0')));
    await file.write(', and written to since');
    await file.close();
    await chosen();
    assert.equal(
      await readFile(join(layerPaths(cache).upper, 'c'), 'utf8'),
      'uploaded, and written to since',
    );
  });

  it('is none while files wait for both, which is said with their folders', async () => {
    await dirty('a');
    await inUpper('b');
    written = 2;
    await assert.rejects(chosen(), /1 files wait in rclone's cache .* and 2 in the write layer/);
  });

  it('counts what was being taken out of the layer as in it', async () => {
    await inUpper('b');
    const aside = join(layerPaths(cache).aside, 'one');
    await put(join(aside, '0'), 'written last');
    await put(join(aside, 'names.json'), JSON.stringify([{ path: 'c' }]));
    await chosen();
    assert.ok(existsSync(join(layerPaths(cache).upper, 'c')));
  });

  it('is the layer when the only file in it was being taken out, and was written to meanwhile', async () => {
    const aside = join(layerPaths(cache).aside, 'one');
    await put(join(aside, '0'), 'written last');
    await put(join(aside, 'names.json'), JSON.stringify([{ path: 'c', changedNs: '1' }]));
    [isLayered, written] = [false, 1];
    assert.equal(await chosen(), 'layer');
    assert.ok(existsSync(join(layerPaths(cache).upper, 'c')));
  });

  it('takes nothing torn in a cache that was only read for a file that users wrote', async () => {
    assert.equal(await isReadOnlyCache(cache), false);
    await beginReadOnlyCache(cache);
    assert.equal(await isReadOnlyCache(cache), true);
    await clean('whole');
    await cached('torn', '{"Size":');
    await put(join(treesOf(cache).data, 'lonely'), '12345');
    await dirty('dirty');
    await dropTorn(treesOf(cache));
    const left = ['whole', 'torn', 'lonely', 'dirty'].filter((name) =>
      existsSync(join(treesOf(cache).data, name)),
    );
    assert.deepEqual(left, ['whole', 'dirty']);
  });

  it('leaves nothing of a layer behind that has ended, nor of one whose removal was cut off', async () => {
    await beginReadOnlyCache(cache);
    await inUpper('b');
    await put(join(cache, 'former-layer', 'upper', 'half'), 'x');
    await removeLayer(cache);
    assert.deepEqual(
      ['layer', 'former-layer'].filter((name) => existsSync(join(cache, name))),
      [],
    );
    assert.equal(await isReadOnlyCache(cache), false);
    await removeLayer(cache);
    await put(join(cache, 'former-layer', 'upper', 'half'), 'x');
    await clearFormerLayer(cache);
    assert.equal(existsSync(join(cache, 'former-layer')), false, 'whichever way comes next');
  });

  it('goes aside with the share, and comes back with it', async () => {
    await settleIdentity(cache, 'here', async () => true);
    await beginReadOnlyCache(cache);
    await inUpper('b');
    await settleIdentity(cache, 'there', async () => true);
    assert.equal(await isReadOnlyCache(cache), false, 'what comes back elsewhere may be dirty');
    await settleIdentity(cache, 'here', async () => true);
    assert.equal(await isReadOnlyCache(cache), true);
  });
});
