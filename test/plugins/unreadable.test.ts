/**
 * What cannot be read is not taken for missing: a name that leads to itself, or a folder where a file belongs,
 * is there and gives an error other than "no such file".
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { undefinedWhenMissing } from '../../core/platform/files/missing.ts';
import { createProcesses } from '../../core/platform/processes/processes.ts';
import { History } from '../../plugins/control-api/config/history.ts';
import { treesOf } from '../../plugins/mount/cache/metadata.ts';
import { layerPaths } from '../../plugins/mount/layer/paths.ts';
import { leftAside } from '../../plugins/mount/layer/upper/set-aside.ts';
import { readBootNote } from '../../plugins/mount/recovery/boot-note.ts';
import { clearAfterPowerCut } from '../../plugins/mount/recovery/power-cut.ts';
import { createUploader } from '../../plugins/uploads/uploader.ts';
import type { UploaderTools } from '../../plugins/uploads/uploader.ts';
import { Journal } from '../../plugins/webdav/proxy/writes/journal.ts';
import { readMemory } from '../../plugins/webhooks/delivery/saved-state.ts';
import { collectLog } from '../support/platform/collected-log.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';

describe('what cannot be read', () => {
  let scratch: Scratch;
  before(async () => (scratch = await createScratch('unreadable')));
  after(() => scratch.close());
  const clock = createManualClock();

  /** Asked for, it gives ELOOP. */
  async function unreadable(...parts: readonly string[]): Promise<string> {
    const path = scratch.path(...parts);
    await mkdir(dirname(path), { recursive: true });
    await symlink(path, path);
    return path;
  }

  it('is told from what is missing', () => {
    const failure = (code: string) => Object.assign(new Error(code), { code });
    assert.equal(undefinedWhenMissing(failure('ENOENT')), undefined);
    assert.equal(undefinedWhenMissing(failure('ENOTDIR')), undefined);
    assert.throws(() => undefinedWhenMissing(failure('EIO')), { code: 'EIO' });
  });

  it('is no upper folder in which nothing waits', async () => {
    const upper = `${await unreadable('layer')}/upper`;
    const { log } = collectLog();
    const processes = createProcesses({
      stateDir: scratch.path('state'),
      clock,
      log,
    });
    const uploader = createUploader({
      processes,
      clock,
      log,
    } as unknown as UploaderTools);
    await assert.rejects(uploader.waiting(upper, scratch.path('records')), {
      code: 'ELOOP',
    });
    assert.equal((await uploader.waiting(scratch.path('none'), scratch.path('records'))).count, 0);
  });

  it('is no folder in which nothing was set aside', async () => {
    const paths = layerPaths(scratch.path('aside-cache'));
    assert.equal((await leftAside(paths)).size, 0);
    await mkdir(dirname(paths.aside), { recursive: true });
    await symlink(paths.aside, paths.aside);
    await assert.rejects(leftAside(paths), { code: 'ELOOP' });
  });

  it('is no cache without a boot, and no content that a power cut has not touched', async () => {
    const { log } = collectLog();
    await unreadable('booted', 'boot');
    await assert.rejects(readBootNote(scratch.path('booted')), {
      code: 'ELOOP',
    });
    const cacheDir = scratch.path('cut');
    const trees = treesOf(cacheDir);
    await mkdir(trees.meta, { recursive: true });
    await writeFile(`${cacheDir}/boot`, 'of another boot\n');
    await writeFile(
      `${trees.meta}/a`,
      '{"Dirty":true,"Size":1,"Rs":[],"Fingerprint":"","ModTime":"","ATime":""}',
    );
    await mkdir(trees.data, { recursive: true });
    await symlink(`${trees.data}/a`, `${trees.data}/a`);
    const { signal } = new AbortController();
    await assert.rejects(clearAfterPowerCut({ cacheDir, trees, clock, log, signal }), {
      code: 'ELOOP',
    });
  });

  it('is no note of an upload that can go', async () => {
    const folder = scratch.path('journal');
    await mkdir(`${folder}/unread.json`, { recursive: true });
    await writeFile(`${folder}/damaged.json`, '{');
    assert.deepEqual(await new Journal(folder).open(), []);
    assert.deepEqual(await readdir(folder), ['unread.json']);
  });

  it('is told of where the daemon goes on without it: deliveries, history', async () => {
    const { log, messages } = collectLog();
    const file = await unreadable('webhooks', 'deliveries.json');
    assert.deepEqual((await readMemory(file, log)).deliveries, []);
    assert.deepEqual(messages(), ['deliveries of the former daemon cannot be read']);
    await new History(scratch.path('state-without'), log).load();
    assert.equal(messages().length, 1);
    await unreadable('state-with', 'config-history.json');
    await new History(scratch.path('state-with'), log).load();
    assert.equal(messages()[1], 'history of the configuration cannot be read');
  });
});
