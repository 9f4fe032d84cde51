/**
 * No program on a share is run by way of its mount, unless the share asks for it; set-user-ID bits and
 * devices never count.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, copyFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { applied, runs } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { until } from '../../support/platform/wait.ts';

const run = promisify(execFile);
const flags = async (mountPoint: string): Promise<readonly string[]> =>
  (await run('findmnt', ['-n', '-o', 'VFS-OPTIONS', mountPoint], { timeout: 20_000 })).stdout
    .trim()
    .split(',');
const start = (file: string): Promise<string> =>
  run(file, { timeout: 20_000 }).then(
    ({ stdout }) => stdout.trim(),
    (error: NodeJS.ErrnoException) => error.code ?? 'failed',
  );

describe('the mounts of rclone', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const at = (share: string, file = ''): string => `${daemon.mountPoint(share)}${file && `/${file}`}`;

  before(async () => {
    scratch = await createScratch('flags');
    const nas = await Nas.create(scratch, { files: { 'x.bin': 10 } });
    await copyFile('/usr/bin/id', nas.path('id'));
    await chmod(nas.path('id'), 0o4755);
    await run('sh', [
      '-c',
      'printf \'#!/bin/sh\\necho ran\\n\' > "$1"; chmod 755 "$1"',
      'sh',
      nas.path('script'),
    ]);
    const shares = [
      { name: 'work', connection: 'nas' },
      { name: 'tools', connection: 'nas', exec: true },
      { name: 'films', connection: 'nas', read_only: true },
    ];
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares,
    });
    await daemon.start();
    await daemon.healthy(['work', 'tools', 'films']);
  });
  after(() => scratch.close());

  it('count neither set-user-ID bits nor devices', async () => {
    for (const share of ['work', 'tools', 'films']) {
      const seen = await flags(at(share));
      assert.ok(seen.includes('nosuid') && seen.includes('nodev'), `${share}: ${seen.join()}`);
    }
  });

  it('run no program, neither a script nor one with a set-user-ID bit', async () => {
    for (const share of ['work', 'films']) {
      assert.ok((await flags(at(share))).includes('noexec'), share);
      assert.deepEqual(
        [await start(at(share, 'script')), await start(at(share, 'id'))],
        ['EACCES', 'EACCES'],
        share,
      );
    }
  });

  it('run them where the share asks for it', async () => {
    assert.ok(!(await flags(at('tools'))).includes('noexec'));
    assert.equal(await start(at('tools', 'script')), 'ran');
    assert.match(await start(at('tools', 'id')), /^uid=0/);
  });

  it('stay read-only where they were, and writable where they were', async () => {
    assert.ok((await flags(at('films'))).includes('ro'));
    assert.ok((await flags(at('work'))).includes('rw'));
  });

  it('are narrowed when a daemon adopts one that is not, without being mounted anew', async () => {
    const before = await daemon.rclonePid('work');
    const holder = run('sh', ['-c', 'exec 3< "$1"; sleep 8; cat <&3 | wc -c', 'sh', at('work', 'x.bin')], {
      timeout: 30_000,
    });
    await daemon.stop('SIGUSR2');
    for (const share of ['work', 'films'])
      await run('mount', ['-i', '-o', `remount,bind,exec${share === 'films' ? ',ro' : ''}`, at(share)]);
    assert.equal(await start(at('work', 'script')), 'ran');
    await daemon.start();
    await daemon.healthy(['work', 'tools', 'films']);
    for (const share of ['work', 'films'])
      await until(`${share} is narrowed`, async () => (await flags(at(share))).includes('noexec'), {
        timeoutMs: 20_000,
      });
    assert.ok((await flags(at('films'))).includes('ro'));
    assert.equal(await daemon.rclonePid('work'), before);
    assert.equal((await holder).stdout.trim(), '10');
  });

  it('are mounted anew when the file lets programs be run; the API may only take that back', async () => {
    const more = daemon.text({ shares: [{ name: 'work', connection: 'nas', exec: true }] });
    assert.equal((await daemon.submit(more)).status, 400);
    await daemon.writeConfig(more);
    await runs(daemon, more);
    assert.equal(await start(at('work', 'script')), 'ran');
    await applied(daemon, daemon.text({ shares: [{ name: 'work', connection: 'nas' }] }));
    assert.equal(await start(at('work', 'script')), 'EACCES');
  });
});
