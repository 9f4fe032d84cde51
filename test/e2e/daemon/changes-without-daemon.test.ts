/** What users change while the daemon is down, and what others save on the NAS since, both stay. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { utimes, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const OLD = new Date('2024-05-06T07:08:09Z');
const NAMES = [
  'saved',
  'removed',
  'alone',
  'gone',
  'draft',
  'replaced',
  'made/anew',
  '../other/last',
] as const;
/** Of what users changed, this others save meanwhile. */
const THEIR_NAMES = ['saved', 'removed', 'replaced', 'made/anew'] as const;
const THEIRS = 'what others saved while no daemon ran';

describe('changes while the daemon is down', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('unseen');
    nas = await Nas.create(scratch, { files: Object.fromEntries(NAMES.map((name) => [`in/${name}`, 30])) });
    for (const name of NAMES) await utimes(nas.path('in', name), OLD, OLD);
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('replace and delete nothing of what others saved since, though rclone has died as well', async () => {
    const files = new Files(scratch);
    const at = (name: string): string => `${daemon.mountPoint('team')}/in/${name}`;
    await files.ask({ op: 'list', path: at('') });
    const pid = await daemon.rclonePid('team');
    await daemon.end();
    // Users work on through the overlay.
    const written = { saved: '', alone: '' };
    for (const name of ['saved', 'alone'] as const)
      written[name] = (
        await files.ask<{ sha256: string }>({ op: 'write', path: at(name), bytes: 50 })
      ).sha256;
    for (const name of ['removed', 'gone']) await files.ask({ op: 'unlink', path: at(name) });
    const sh = (script: string) => promisify(execFile)('sh', ['-c', script], { cwd: at('') });
    await sh('mv draft replaced; rm -r made; mkdir made');
    const draft = await nas.checksum('in/draft');
    await sleep(1_100);
    for (const name of THEIR_NAMES) await writeFile(nas.path('in', name), THEIRS);
    await sleep(1_100);
    // The kernel notes all deletions of the share at one inode, whose time is that of the last.
    await sh('rm ../other/last');
    process.kill(pid, 'SIGKILL');
    await until('rclone is gone', () => !isAlive(pid), { timeoutMs: 10_000 });
    const theirs = await nas.checksum('in/saved');
    await daemon.start();
    await daemon.synced(60_000);

    const found = await nas.checksums('in');
    const copies = [...found.keys()].filter((name) => /conflict/.test(name));
    // What nobody else touched is replaced, moved and deleted.
    assert.deepEqual(
      [...found.keys()].filter((name) => !copies.includes(name)).sort(),
      ['alone', ...THEIR_NAMES].sort(),
    );
    const sums = (name: string): string[] =>
      [...found]
        .flatMap(([path, sum]) => (path === name || path.startsWith(`${name} (conflict`) ? [sum] : []))
        .sort();
    assert.deepEqual(sums('saved'), [theirs, written.saved].sort());
    assert.deepEqual(sums('replaced'), [theirs, draft].sort());
    for (const name of ['removed', 'made/anew']) assert.deepEqual(sums(name), [theirs], name);
    assert.deepEqual(sums('alone'), [written.alone]);
    await until(
      'users see what was not deleted',
      async () => (await files.ask<string[]>({ op: 'list', path: at('') })).includes('removed'),
      { timeoutMs: 30_000 },
    );
  });
});
