// @load quiet
/**
 * `mountkeeper receipt` on a share with a write layer: a list of what the NAS has, which agrees with what was
 * written; what is not there yet is named, and the command says so by its exit code.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { unlessRoot } from '../../runner/skips.ts';

const SHARE = 'files';
const SYNCED_MS = 60_000;

describe('a receipt of a share with a write layer', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;

  const sh = async (script: string): Promise<void> => {
    const command = `cd "${daemon.mountPoint(SHARE)}" && { ${script}; }`;
    const { code, output } = await runClient('sh', ['-c', command], 30_000);
    assert.equal(code, 0, `${script}: ${output}`);
  };
  const md5 = async (path: string): Promise<string> =>
    createHash('md5')
      .update(await readFile(nas.path('files', path)))
      .digest('hex');
  /** Path → `kind value`, in the order of the list. */
  const listed = (xml: string): [string, string][] =>
    [...xml.matchAll(/<path size="\d+"[^>]*>([^<]*)<\/path>\s*<(\w+) [^>]*>([0-9a-f]+)</g)].map(
      ([, path, kind, value]) => [path!, `${kind} ${value}`],
    );

  before(async () => {
    scratch = await createScratch('layer-receipt');
    nas = await Nas.create(scratch, {
      files: { 'files/reel/theirs.mov': 50_000, 'files/elsewhere': 10 },
    });
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: 'files' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('lists what was written and what was there, with hashes of what the NAS has', async () => {
    await sh('mkdir reel/sub; head -c 300000 /dev/urandom > reel/a.mov; printf "1 & 2" > "reel/sub/b & c"');
    await daemon.synced(SYNCED_MS);
    const { code, stdout, stderr } = await daemon.cli('receipt', SHARE, 'reel/');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<hashlist version="2\.0" /);
    assert.deepEqual(listed(stdout), [
      ['a.mov', `md5 ${await md5('reel/a.mov')}`],
      ['sub/b &amp; c', `md5 ${await md5('reel/sub/b & c')}`],
      ['theirs.mov', `md5 ${await md5('reel/theirs.mov')}`],
    ]);
    assert.match(stderr, /3 files are proved/);
    const verified = await daemon.cli('verify', SHARE, 'reel/');
    assert.equal(verified.code, 0, verified.stderr);
    assert.match(verified.stdout, /^reel\/a\.mov .* hash$/m);
    assert.match(verified.stdout, /2 files held against the remote, 0 differ/);
  });

  it('names what waits, lists the rest, and fails', async () => {
    await daemon.cli('queue', SHARE, '--pause', '1h');
    await sh('printf changed > reel/a.mov; printf new > reel/new.mov; rm reel/theirs.mov');
    const { code, stdout, stderr } = await daemon.cli('receipt', SHARE, 'reel');
    assert.equal(code, 1);
    assert.deepEqual(
      listed(stdout).map(([path]) => path),
      ['sub/b &amp; c'],
    );
    for (const path of ['reel/a.mov', 'reel/new.mov', 'reel/theirs.mov'])
      assert.match(stderr, new RegExp(`^not proved: ${path}: `, 'm'));
    await daemon.cli('queue', SHARE, '--resume');
    await daemon.synced(SYNCED_MS);
  });

  it('gives up one file that waits, by its name, and shows what the NAS has', async () => {
    const kept = (answer: string): string => /is kept at (.*) for 7 days/.exec(answer)?.[1] ?? '';
    const theirs = nas.path('files', 'elsewhere');
    const former = await readFile(theirs);
    await daemon.cli('queue', SHARE, '--pause', '1h');
    await sh('printf unwanted > elsewhere; printf new > reel/unwanted.mov');
    const discard = (path: string) => daemon.cli('queue', SHARE, path, '--discard');
    const isQueued = async (): Promise<boolean> =>
      (await daemon.cli('queue', SHARE)).stdout.includes('reel/unwanted.mov');
    await until('it waits', isQueued, { timeoutMs: 30_000 });
    const holder = await open(`${daemon.mountPoint(SHARE)}/elsewhere`);
    assert.match((await discard('elsewhere')).stderr, /A program has elsewhere open/);
    await holder.close();
    const given = await discard('elsewhere');
    assert.equal(given.code, 0, given.stderr);
    assert.match(given.stdout, /the remote's version shows again/);
    await sh(`cmp elsewhere "${theirs}"`);
    assert.equal(await readFile(kept(given.stdout), 'utf8'), 'unwanted');
    const gone = await discard('reel/unwanted.mov');
    assert.match(gone.stdout, /the name is gone/, gone.stderr);
    await sh('test ! -e reel/unwanted.mov');
    assert.equal(await readFile(kept(gone.stdout), 'utf8'), 'new');
    await daemon.cli('queue', SHARE, '--resume');
    await daemon.synced(SYNCED_MS);
    assert.deepEqual(await readFile(theirs), former);
    assert.equal(await nas.has('files/reel/unwanted.mov'), false);
  });

  it('names what the NAS has lost or damaged since, with the size and time unchanged', async () => {
    const file = nas.path('files', 'reel/a.mov');
    const { mtime } = await stat(file);
    await writeFile(file, 'CHANGED');
    const touched = await runClient('touch', ['-d', mtime.toISOString(), file]);
    assert.equal(touched.code, 0, touched.output);
    await rm(nas.path('files', 'reel/new.mov'));
    const { code, stdout, stderr } = await daemon.cli('receipt', SHARE, 'reel');
    assert.equal(code, 1);
    assert.doesNotMatch(stdout, />a\.mov</);
    assert.match(stderr, /^not proved: reel\/a\.mov: The remote has other content/m);
    assert.match(stderr, /^not proved: reel\/new\.mov: The remote does not have it/m);
    const verified = await daemon.cli('verify', SHARE);
    assert.equal(verified.code, 1);
    assert.match(verified.stdout, /^reel\/a\.mov .* differs$/m);
    assert.match(verified.stderr, /2 differ/);
  });

  it('writes a file whole, and neither over a link nor for what is not there', async () => {
    const file = scratch.path('out', 'reel.mhl');
    const { code, stdout } = await daemon.cli('receipt', SHARE, 'reel/sub', '--output', file);
    assert.deepEqual([code, stdout], [0, '']);
    assert.equal(listed(await readFile(file, 'utf8')).length, 1);
    assert.deepEqual(await readdir(scratch.path('out')), ['reel.mhl']);
    const link = scratch.path('link');
    await symlink(file, link);
    assert.equal((await daemon.cli('receipt', SHARE, 'reel', '--output', link)).code, 64);
    const none = await daemon.cli('receipt', SHARE, 'nowhere', '--output', scratch.path('none'));
    assert.deepEqual([none.code, none.stderr], [1, "There is no 'nowhere' on the remote.\n"]);
    assert.equal((await daemon.cli('receipt', SHARE)).code, 64);
    assert.match((await daemon.cli('receipt', 'none', 'reel')).stderr, /not mounted with a write layer/);
  });

  it('is none while the NAS is away', async () => {
    await nas.stop();
    const fails = async (): Promise<boolean> => {
      const { code, stdout } = await daemon.cli('receipt', SHARE, 'reel');
      return code === 1 && stdout === '';
    };
    await until('the receipt fails', fails, { timeoutMs: 60_000 });
  });
});
