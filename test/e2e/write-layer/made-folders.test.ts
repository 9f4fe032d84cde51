/**
 * Folders that users made, and into which others put something on the NAS: it shows once nobody here has changed
 * anything in them for a minute, or has them open. What users have deleted in them does not come back meanwhile.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

/** A minute of rest, a try every 30 s, and the looks between them on a busy machine. */
const SHOWN_MS = 180_000;
const SYNCED_MS = 60_000;
/** What has come back would be there for as long as its deletion takes. */
const BACK_MS = 3_000;

describe('a folder that users made', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  /** Whatever was seen in the folder `paused` while its deletions waited. */
  const seenMeanwhile = new Set<string>();
  let holders: ReturnType<typeof runClient>;

  const sh = async (share: string, script: string): Promise<string> => {
    const { code, output } = await runClient(
      'sh',
      ['-c', `cd "${daemon.mountPoint(share)}" && { ${script}; }`],
      20_000,
    );
    assert.equal(code, 0, `${script}: ${output}`);
    return output.trim();
  };
  const namesIn = async (share: string, folder: string): Promise<readonly string[]> =>
    (await sh(share, `find ${folder} -mindepth 1 | sort`)).split('\n').filter((name) => name !== '');
  const shows = async (share: string, path: string): Promise<void> => {
    const folder = path.slice(0, path.lastIndexOf('/'));
    await until(`${path} is seen`, async () => (await namesIn(share, folder)).includes(path), {
      timeoutMs: SHOWN_MS,
      everyMs: 500,
    });
  };

  before(async () => {
    scratch = await createScratch('made-folders');
    nas = await Nas.create(scratch, { files: { 'team/old/file': 10, 'slow/old/file': 10 } });
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: ['team', 'slow'].map((name) => ({ name, connection: 'nas', remote_path: name })),
      sections: { mount: { write_back: '1s' } },
    });
    await daemon.start();
    await daemon.healthy([], 120_000);
    for (const name of ['go', 'stop']) await runClient('mkfifo', [scratch.path(name)]);
    await sh('team', 'for one in plain stood open; do mkdir -p $one/sub; echo mine > $one/mine; done');
    await sh('team', 'echo gone > plain/gone; echo gone > plain/sub/gone');
    await sh('slow', 'mkdir -p paused/sub; for one in mine gone sub/gone; do echo 1 > paused/$one; done');
    await daemon.synced(SYNCED_MS);
    // One program stands in its folder, another has its folder open.
    holders = runClient(
      'sh',
      [
        '-c',
        `cd "${daemon.mountPoint('team')}" || exit 1
         (cd stood && read -r _ < "${scratch.path('go')}") & exec 3< open || exit 1
         read -r _ < "${scratch.path('stop')}"; wait`,
      ],
      300_000,
    );
    for (const folder of ['plain', 'plain/sub', 'stood', 'open'])
      await writeFile(nas.path('team', folder, 'theirs'), 'saved by others');
    await mkdir(nas.path('team/plain/made'));
    // Deletions wait for as long as the share is paused.
    assert.equal((await daemon.cli('queue', 'slow', '--pause', '1h')).code, 0);
    await sh('slow', 'rm paused/gone paused/sub/gone');
    await sh('team', 'rm plain/gone plain/sub/gone');
    await writeFile(nas.path('slow/paused/theirs'), 'saved by others');
  });
  after(() => scratch.close());

  it('shows what others put into it and into the folders in it; what was deleted there stays away', async () => {
    const seen = new Set<string>();
    await until(
      'what others saved is seen',
      async () => {
        for (const name of await namesIn('team', 'plain')) seen.add(name);
        for (const name of await namesIn('slow', 'paused')) seenMeanwhile.add(name);
        return seen.has('plain/theirs');
      },
      { timeoutMs: SHOWN_MS, everyMs: 200 },
    );
    await sleep(BACK_MS);
    assert.deepEqual(await namesIn('team', 'plain'), [
      'plain/made',
      'plain/mine',
      'plain/sub',
      'plain/sub/theirs',
      'plain/theirs',
    ]);
    assert.deepEqual(
      [...seen].filter((name) => name.endsWith('gone')),
      [],
    );
    assert.equal(await sh('team', 'cat plain/theirs plain/sub/theirs'), 'saved by otherssaved by others');
  });

  it('shows it to all once nobody stands in it or has it open any more', async () => {
    assert.deepEqual(await namesIn('team', 'stood open'), [
      'open/mine',
      'open/sub',
      'stood/mine',
      'stood/sub',
    ]);
    for (const name of ['go', 'stop']) await writeFile(scratch.path(name), 'on\n');
    const { code, output } = await holders;
    assert.deepEqual([code, output], [0, '']);
    for (const folder of ['stood', 'open']) await shows('team', `${folder}/theirs`);
  });

  it('hides all of it for as long as a deletion in it waits, and shows nothing of that after it', async () => {
    for (const name of await namesIn('slow', 'paused')) seenMeanwhile.add(name);
    assert.deepEqual([...seenMeanwhile].sort(), ['paused/mine', 'paused/sub']);
    assert.equal(await nas.has('slow/paused/gone'), true);
    assert.equal((await daemon.cli('queue', 'slow', '--resume')).code, 0);
    const seen = new Set<string>();
    await until(
      'what others saved is seen',
      async () => {
        for (const name of await namesIn('slow', 'paused')) seen.add(name);
        return seen.has('paused/theirs');
      },
      { timeoutMs: SHOWN_MS, everyMs: 100 },
    );
    assert.deepEqual([...seen].sort(), ['paused/mine', 'paused/sub', 'paused/theirs']);
    assert.deepEqual(
      [await nas.has('slow/paused/gone'), await nas.has('slow/paused/sub/gone')],
      [false, false],
    );
  });

  it('lets what others put there be changed and deleted like anything else', async () => {
    await sh('team', 'rm plain/theirs; echo more >> plain/sub/theirs');
    await daemon.synced(SYNCED_MS);
    assert.equal(await nas.has('team/plain/theirs'), false);
    assert.equal(await readFile(nas.path('team/plain/sub/theirs'), 'utf8'), 'saved by othersmore\n');
    assert.deepEqual((await readdir(nas.path('team/plain'), { recursive: true })).sort(), [
      'made',
      'mine',
      'sub',
      'sub/theirs',
    ]);
  });
});
