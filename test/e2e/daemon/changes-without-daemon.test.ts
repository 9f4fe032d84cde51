/** What users change while the daemon is down, and what others save on the NAS since, both stay. */
import assert from 'node:assert/strict';
import { utimes, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const OLD = new Date('2024-05-06T07:08:09Z');
const THEIRS = 'what others saved while no daemon ran';

describe('changes while the daemon is down', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('unseen');
    nas = await Nas.create(scratch, {
      files: { 'in/saved': 30, 'in/removed': 30, 'in/alone': 30, 'in/gone': 30 },
    });
    for (const name of ['saved', 'removed', 'alone', 'gone']) await utimes(nas.path('in', name), OLD, OLD);
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
    const written: Record<string, string> = {};
    for (const name of ['saved', 'alone'])
      written[name] = (
        await files.ask<{ sha256: string }>({ op: 'write', path: at(name), bytes: 50 })
      ).sha256;
    for (const name of ['removed', 'gone']) await files.ask({ op: 'unlink', path: at(name) });
    process.kill(pid, 'SIGKILL');
    await until('rclone is gone', () => !isAlive(pid), { timeoutMs: 10_000 });
    await sleep(2_000);
    for (const name of ['saved', 'removed']) await writeFile(nas.path('in', name), THEIRS);
    const theirs = await nas.checksum('in/saved');
    await daemon.start();
    await daemon.synced(60_000);

    const found = await nas.checksums('in');
    const [copy, ...more] = [...found.keys()].filter((name) => /conflict/.test(name));
    assert.ok(copy !== undefined && more.length === 0, JSON.stringify([...found.keys()]));
    // What nobody else touched is replaced and deleted.
    assert.deepEqual(
      found,
      new Map(
        [...found.keys()].map((name) => [
          name,
          { removed: theirs, saved: theirs, alone: written['alone'] }[name] ?? written['saved'],
        ]),
      ),
    );
    assert.deepEqual([...found.keys()].sort(), ['alone', 'removed', 'saved', copy].sort());
    await until(
      'users see what was not deleted',
      async () => (await files.ask<string[]>({ op: 'list', path: at('') })).includes('removed'),
      { timeoutMs: 30_000 },
    );
  });
});
