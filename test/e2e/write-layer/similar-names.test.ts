// @load quiet
// @long
/**
 * By rclone: renames that change the case alone, on a NAS that tells no case apart, and names that a NAS cannot
 * keep.
 */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import { startRemote } from '../../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../../support/write-layer/uploader-remote.ts';
import { settle, TestShare, treeOf } from '../../support/write-layer/uploader-share.ts';
import { inForm } from '../../support/platform/long-form.ts';

/** More connections than rclone uses for one rename, so that each call of it comes to another one. */
const CONNECTIONS = 8;

/** Each smbd that serves a connection of rclone's then knows them by their former names. */
async function lookByOtherCase(files: RemoteFiles, paths: readonly string[]): Promise<void> {
  const options = { signal: AbortSignal.timeout(30_000) };
  const turns = Array.from({ length: CONNECTIONS }, (_, turn) => turn);
  await Promise.all(turns.map(() => files.list('', options)));
  for (const path of paths) for (const _ of turns) await files.stat(path.toUpperCase(), options);
}

const TYPES = ['sftp', 'webdav', 'smb'] as const;

for (const type of inForm<typeof TYPES | readonly ['smb']>({ short: ['smb'], long: TYPES }))
  describe(`a NAS that tells no case apart, over ${type}`, () => {
    let share: TestShare;
    let remote: TestRemote;

    before(async () => {
      share = new TestShare();
      mkdirSync(join(share.nas, 'Folder'));
      for (const path of ['Moved', 'Saved', 'Folder/in']) {
        writeFileSync(join(share.nas, path), `first ${path}`);
        utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
      }
      remote = await startRemote(type, share.nas, ['--vfs-case-insensitive']);
      share.files = remote.files;
      if (type === 'webdav') share.precisionMs = Infinity;
      share.up();
    });
    after(async () => {
      await remote.close();
      share.close();
    });

    it('keeps each file under its new name, and none is lost', async () => {
      assert.ok(
        await remote.files.stat('mOVED', { signal: AbortSignal.timeout(10_000) }),
        'it tells no case apart',
      );
      await lookByOtherCase(remote.files, ['Moved', 'Saved', 'Folder']);
      renameSync(share.at('Moved'), share.at('moved'));
      renameSync(share.at('Folder'), share.at('folder'));
      writeFileSync(share.at('Saved'), 'second');
      renameSync(share.at('Saved'), share.at('saved'));
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(
        [...treeOf(share.nas)].filter(([, content]) => content !== '/'),
        [
          ['folder/in', 'first Folder/in'],
          ['moved', 'first Moved'],
          ['saved', 'second'],
        ],
      );
      assert.deepEqual(share.conflicts, []);
    });
  });

/** Each is kept by one of the kinds at least, or refused by all. */
const NAMES = [
  'a:b?.txt',
  'x.',
  'y ',
  'CON',
  'aux.txt',
  'a\tb',
  'a\nb',
  'del\x7F',
  '‛',
  '‛：',
  '␉x',
  'x␡',
  '．',
  'x．',
  'a／b',
  'ü：%41',
];
const LONG = 'n'.repeat(255);
/** 255 bytes here, and 255 characters of three bytes each where `?` has a look-alike. */
const GROWING = '?'.repeat(255);

for (const type of inForm<typeof TYPES | readonly ['webdav']>({ short: ['webdav'], long: TYPES }))
  describe(`names that few can keep, over ${type}`, () => {
    let share: TestShare;
    let remote: TestRemote;
    before(async () => {
      share = new TestShare();
      remote = await startRemote(type, share.nas);
      share.files = remote.files;
      if (type === 'webdav') share.precisionMs = Infinity;
      share.up();
    });
    after(async () => {
      await remote.close();
      share.close();
    });

    it('come back as they are, or are told of and hold up nobody', async () => {
      const names = [...NAMES, LONG, GROWING];
      for (const name of names) writeFileSync(share.at(name), 'mine');
      const uploader = share.uploader();
      await settle(uploader, 3).catch(() => undefined);
      const stuck = uploader.queue();
      await uploader.stop();
      const there = (await remote.files.list('', { signal: AbortSignal.timeout(10_000) })) ?? [];
      const waiting = stuck.map(({ path }) => path);
      assert.deepEqual([...there.map(({ name }) => name), ...waiting].sort(), [...names].sort());
      const refused = stuck.filter(({ reason }) => reason.startsWith('The remote cannot keep the name'));
      const devices = type === 'smb' ? ['CON', 'aux.txt'] : [];
      assert.deepEqual(
        refused.map(({ path }) => path).sort(),
        ['a\tb', 'a\nb', 'del\x7F', '‛', '‛：', ...devices].sort(),
      );
      for (const { path, state, reason } of refused)
        assert.ok(state === 'stuck' && reason.includes(JSON.stringify(path)), reason);
      // Only the server knows what is too long for it.
      const others = stuck.filter((one) => !refused.includes(one));
      assert.deepEqual(
        others.map(({ path, tries }) => [path, tries > 0]),
        type === 'smb' ? [[GROWING, true]] : [],
      );
    });
  });
