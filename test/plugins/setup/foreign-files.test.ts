/** Whose word the set-up on the terminal takes: before it reads or runs anything that a file names. */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { CliContext } from '../../../core/contract/cli.ts';
import { importCommand } from '../../../plugins/setup/commands.ts';
import { foreignProblem } from '../../../plugins/setup/import/foreign-file.ts';
import { offlineCalls } from '../../../plugins/setup/offline.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const NOBODY = 65_534;

describe('files of strangers', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('foreign-files');
  });
  after(() => scratch.close());

  it('are no configuration for init and import, which would run the programs that it names', async () => {
    const folder = scratch.path('open');
    await mkdir(folder);
    await writeFile(`${folder}/mountkeeper.toml`, '[mount]\nrclone = "/tmp/anything"\n', { mode: 0o600 });
    const cli = {
      configFile: `${folder}/mountkeeper.toml`,
      args: ['rclone', 'nas', '--yes'],
      signal: new AbortController().signal,
      offline: (name: string) => assert.fail(`${name} was made from the stranger's file`),
    } as unknown as CliContext;
    for (const set of [() => chmod(folder, 0o777), () => chmod(`${folder}/mountkeeper.toml`, 0o620)]) {
      await set();
      await assert.rejects(offlineCalls(cli), /may be written by .*; run this as the user/);
      await assert.rejects(importCommand.run(cli), /may be written by .*; run this as the user/);
      await chmod(folder, 0o700);
    }
  });

  it('are imported by root only where root or the user of sudo wrote them', { skip: unlessRoot }, (t) => {
    const before = process.env['SUDO_UID'];
    t.after(() => {
      if (before === undefined) delete process.env['SUDO_UID'];
      else process.env['SUDO_UID'] = before;
    });
    delete process.env['SUDO_UID'];
    assert.equal(foreignProblem({ uid: 0, mode: 0o100644 }), undefined);
    assert.match(foreignProblem({ uid: NOBODY, mode: 0o100600 }) ?? '', /belongs to user 65534/);
    process.env['SUDO_UID'] = String(NOBODY);
    assert.equal(foreignProblem({ uid: NOBODY, mode: 0o100644 }), undefined);
    assert.match(foreignProblem({ uid: 1, mode: 0o100600 }) ?? '', /belongs to user 1,/);
    assert.match(foreignProblem({ uid: 0, mode: 0o100664 }) ?? '', /others may write it/);
  });

  it('are refused before rclone or the reader of fstab sees them', { skip: unlessRoot }, async () => {
    const file = scratch.path('theirs');
    await writeFile(file, '//nas/x /mnt/x cifs credentials=/root/secret 0 0\n[nas]\ntype = sftp\n');
    await chown(file, NOBODY, NOBODY);
    for (const args of [
      ['fstab', '/mnt/x'],
      ['rclone', 'nas'],
    ]) {
      const cli = {
        configFile: scratch.path('mountkeeper.toml'),
        args: [...args, '--from', file, '--yes', '--untried'],
        signal: new AbortController().signal,
        // rclone is found, and never started.
        offline: async () => ({ command: '/nowhere', run: () => assert.fail('rclone was started') }),
      } as unknown as CliContext;
      await assert.rejects(importCommand.run(cli), /theirs cannot be read: it belongs to user 65534/);
    }
  });
});
