// @load quiet
/** Two names of one file, as `ln`, `cp -al` and `rsync --link-dest` make them on the machine itself and over NFS. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

describe('a hard link to a file that only the NAS has', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let sum: string;

  before(async () => {
    scratch = await createScratch('hard-links');
    nas = await Nas.create(scratch, { files: { 'team/a': 5_000 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
    });
    await daemon.start();
    await daemon.healthy(['team']);
    sum = await nas.checksum('team/a');
  });
  after(() => scratch.close());

  const sh = async (script: string): Promise<string> => {
    const { code, output } = await runClient('sh', ['-c', `cd "${daemon.mountPoint('team')}" && ${script}`]);
    assert.equal(code, 0, output);
    return output;
  };

  it('leaves the file where it is, and says of the second name that it cannot be kept', async () => {
    await sh('ln a b');
    await until(
      'it is told',
      async () => /hard link/.test(JSON.stringify((await daemon.get('/api/queue/team')).body)),
      { timeoutMs: 20_000 },
    );
    // As long as several looks: the NAS had renamed it at each.
    for (let turn = 0; turn < 30; turn += 1) {
      await sleep(100);
      assert.deepEqual([existsSync(nas.path('team/a')), existsSync(nas.path('team/b'))], [true, false]);
    }
    assert.equal((await daemon.status()).all_synced, false);
    assert.equal(await sh('sha256sum a b | cut -c1-64'), `${sum}\n${sum}\n`);
  });

  it('is kept once it is a copy', async () => {
    await sh('cp b c && mv c b');
    await daemon.synced(30_000);
    assert.deepEqual(await Promise.all(['team/a', 'team/b'].map((name) => nas.checksum(name))), [sum, sum]);
  });
});
