// @load quiet
/**
 * A share with a write layer whose disk is full: writers are told, and the NAS gets no file that a full disk
 * has cut off.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { detachAll, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const MB = 1_048_576;
const SHARE = 's';
/**
 * Writes files of 4 MB until one fails; tells `done NAME SHA256`, or `failed NAME CODE`. The last one is left
 * as it is.
 */
const WRITER = `
  const { createHash, randomBytes } = require('node:crypto');
  const { writeFileSync } = require('node:fs');
  for (let n = 0, failed = false; n < 60 && !failed; n += 1) {
    const bytes = randomBytes(${4 * MB});
    // Files of the last seconds before the disk is full may all be cut off, for all that anybody knows.
    if (n === 9) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000);
    try {
      writeFileSync(process.argv[1] + '/f' + n, bytes);
      console.log('done f' + n + ' ' + createHash('sha256').update(bytes).digest('hex'));
    } catch (error) {
      failed = true;
      console.log('failed f' + n + ' ' + error.code);
    }
  }
  try {
    writeFileSync(process.argv[1] + '/doc', randomBytes(${8 * MB}));
  } catch (error) {
    console.log('failed doc ' + error.code);
  }`;

describe('a share with a write layer on a full disk', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let lines: readonly (readonly string[])[] = [];

  const named = (what: string): readonly (readonly string[])[] => lines.filter(([first]) => first === what);

  before(async () => {
    scratch = await createScratch('layer-full');
    nas = await Nas.create(scratch, { files: { 's/doc': 100_000 } });
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: 's' }],
      sections: {
        mount: { write_back: '2s' },
        cache: { min_free_space: '20M' },
      },
    });
    await mkdir(daemon.cacheDir, { recursive: true });
    const { code } = await runClient('mount', [
      '-t',
      'tmpfs',
      '-o',
      'size=64m',
      'mountkeeper-test',
      daemon.cacheDir,
    ]);
    assert.equal(code, 0);
    scratch.defer(async () =>
      detachAll((await mountsBelow(daemon.cacheDir)).filter(({ fsType }) => fsType === 'tmpfs')),
    );
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('tells the writer at once', async () => {
    const before = await nas.checksum('s/doc');
    const { output } = await runClient(process.execPath, ['-e', WRITER, daemon.mountPoint(SHARE)], 60_000);
    lines = output
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    assert.ok(named('done').length >= 5, output);
    assert.deepEqual(
      named('failed').map(([, , code]) => code),
      ['ENOSPC', 'ENOSPC'],
    );
    assert.equal(await nas.checksum('s/doc'), before);
  });

  it('uploads what is whole, and names and keeps back what may be truncated', async () => {
    const before = await nas.checksum('s/doc');
    const failed = named('failed')
      .map(([, name = '']) => name)
      .sort();
    const whole = new Map(named('done').map(([, name = '', sum = '']) => [`${name}`, sum]));
    const waiting = async (): Promise<readonly { path: string; state: string; reason: string }[]> =>
      (
        JSON.parse((await daemon.cli('queue', SHARE, '--json')).stdout) as {
          entries: { path: string; state: string; reason: string }[];
        }
      ).entries;
    await until(
      'only what may be cut off waits',
      async () => {
        const entries = await waiting();
        const isSeen = failed.every((name) => entries.some(({ path }) => path === name));
        return isSeen && entries.every(({ state }) => state === 'stuck');
      },
      { timeoutMs: 60_000, everyMs: 500 },
    );
    const stuck = await waiting();
    for (const name of failed)
      assert.match(stuck.find(({ path }) => path === name)?.reason ?? '', /disk was full/, name);
    for (const [name, sum] of whole) {
      if (!stuck.some(({ path }) => path === name))
        assert.equal(await nas.checksum(`s/${name}`), sum, `${name} arrived whole`);
    }
    assert.ok(
      named('done')
        .slice(0, 8)
        .every(([, name]) => !stuck.some(({ path }) => path === name)),
      'earlier ones are whole',
    );
    assert.equal(await nas.checksum('s/doc'), before, 'the NAS has the former version');
    assert.equal(await nas.has(`s/${failed.find((name) => name !== 'doc') ?? ''}`), false);
    assert.equal((await daemon.status()).all_synced, false);
    assert.match((await daemon.share(SHARE)).health_message ?? '', /disk was full|is full/);
  });

  it('goes on by itself when there is room and the files are written again', async () => {
    const names = named('failed').map(([, name = '']) => name);
    await runClient('mount', ['-o', 'remount,size=256m', daemon.cacheDir]);
    // What is written before it is known that there is room may be cut off, for all that anybody knows.
    await sleep(1_000);
    for (const name of names)
      await runClient('sh', ['-c', `printf whole > '${daemon.mountPoint(SHARE)}/${name}'`]);
    const entries = async (): Promise<readonly { path: string }[]> =>
      (
        JSON.parse((await daemon.cli('queue', SHARE, '--json')).stdout) as {
          entries: { path: string }[];
        }
      ).entries;
    for (const { path } of await entries())
      if (!names.includes(path)) await daemon.cli('queue', SHARE, path, '--send');
    await daemon.synced(60_000);
    for (const [, name = '', sum] of named('done')) assert.equal(await nas.checksum(`s/${name}`), sum, name);
    for (const name of names) assert.equal(await readFile(nas.path('s', name), 'utf8'), 'whole');
  });
});
