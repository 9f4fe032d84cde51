import assert from 'node:assert/strict';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { rcloneRights } from '../../../../plugins/mount/options/rights.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const SOMEBODY = 12_345;

describe('what the rclone of a mount is left with', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('rclone-rights');
    await mkdir(scratch.path('cache'));
    await mkdir(scratch.path('home'), { mode: 0o700 });
    await writeFile(scratch.path('home', 'key'), '');
    await chown(scratch.path('home'), SOMEBODY, SOMEBODY);
  });
  after(() => scratch.close());

  interface Asked {
    readonly type?: string;
    readonly options?: Readonly<Record<string, string>>;
    readonly cache?: string;
    readonly files?: readonly string[];
    readonly isLower?: boolean;
  }
  const capabilities = async (asked: Asked) => {
    const { type = 'sftp', options = {}, cache = 'cache', files = [], isLower = false } = asked;
    const rights = await rcloneRights({
      processes: createProcesses({
        stateDir: scratch.path('state'),
        clock: createClock(),
        log: collectLog().log,
      }),
      connection: { name: 'nas', type, options },
      options: new Map(Object.entries(options)),
      cacheDir: scratch.path(cache),
      files,
      isLower,
    });
    assert.equal(rights?.user, undefined);
    return rights?.capabilities.join(' ');
  };
  const ALONE = 'sys_admin';
  const WITH_OTHERS = 'sys_admin dac_override fowner';

  it('is mounting alone, where all that it reads and writes is root’s', async () => {
    const options = { host: 'nas', key_file: scratch.path('cache'), url: 'https://nas/path' };
    assert.equal(await capabilities({ options, files: [process.execPath] }), ALONE);
  });

  it('reads what is below a write layer through the daemon, whose it may be', async () => {
    assert.equal(await capabilities({ isLower: true }), 'sys_admin sys_ptrace dac_read_search');
  });

  it('reaches a key, a program and a mount point in the home of somebody else', async () => {
    const [key, gone] = [scratch.path('home', 'key'), scratch.path('gone')];
    assert.equal(await capabilities({ options: { key_file: key } }), WITH_OTHERS);
    assert.equal(await capabilities({ files: [key] }), WITH_OTHERS);
    assert.equal(await capabilities({ options: { key_file: gone } }), WITH_OTHERS, 'it may be there later');
  });

  it('reaches a cache that was another user’s, or holds a file of one', async () => {
    await mkdir(scratch.path('of another'));
    await chown(scratch.path('of another'), SOMEBODY, SOMEBODY);
    assert.equal(await capabilities({ cache: 'of another' }), WITH_OTHERS);
    const folder = scratch.path('mixed', 'vfsMeta', 'nas', 'photos');
    await mkdir(folder, { recursive: true });
    assert.equal(await capabilities({ cache: 'mixed' }), ALONE);
    await writeFile(`${folder}/waits`, '');
    await chown(`${folder}/waits`, SOMEBODY, SOMEBODY);
    assert.equal(await capabilities({ cache: 'mixed' }), WITH_OTHERS);
  });

  it('is more for what works on files of this machine, or runs a program of the admin’s', async () => {
    assert.equal(await capabilities({ type: 'local' }), WITH_OTHERS);
    assert.equal(await capabilities({ type: 'crypt', options: { remote: '/srv/x' } }), WITH_OTHERS);
    assert.equal(await capabilities({ options: { ssh: 'ssh -i key me@nas' } }), WITH_OTHERS);
    assert.equal(await capabilities({ options: { bearer_token_command: 'token' } }), WITH_OTHERS);
  });
});
