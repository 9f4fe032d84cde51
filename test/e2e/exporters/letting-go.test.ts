import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { exportStatus, runClient, smb, SmbSession } from '../../support/exports/client-programs.ts';

const USER = 'alice%pw';

describe('servers release a share', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const ports = { smb: 0, nfs: 0 };
  const share = { name: 'team', connection: 'nas', remote_path: 'team' };
  const other = { name: 'photos', connection: 'nas', remote_path: 'photos' };

  before(async () => {
    scratch = await createScratch('letgo');
    const nas = await Nas.create(scratch, { files: { 'team/a': 10_000, 'team/sub/b': 10, 'photos/c': 10 } });
    Object.assign(ports, { smb: await freePort(), nfs: await freePort() });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [share, other],
      sections: {
        smb: { enabled: true, port: ports.smb, users: [{ name: 'alice', password: 'pw' }] },
        nfs: { enabled: true, port: ports.nfs, allowed_clients: ['127.0.0.1'] },
      },
    });
    await daemon.start();
    await daemon.healthy();
    await until(
      'all is served',
      async () => {
        const { smbd_running: isSmb, nfs_exported: isNfs } = await exportStatus(daemon);
        return isSmb && isNfs;
      },
      { timeoutMs: 30_000 },
    );
    for (const { name } of [share, other])
      await until(
        `${name} is shown`,
        async () => (await smb(name, 'ls', { port: ports.smb, user: USER })).code === 0,
        { timeoutMs: 30_000 },
      );
    await until(
      'NFS clients find it',
      async () =>
        (await runClient('nfs-ls', [`nfs://127.0.0.1/team?version=4&nfsport=${ports.nfs}`])).code === 0,
      { timeoutMs: 30_000 },
    );
  });
  after(() => scratch.close());

  it('so that its mount can be taken down though clients have folders and files open', async () => {
    const session = new SmbSession('team', { port: ports.smb, user: USER }, scratch);
    const bystander = new SmbSession('photos', { port: ports.smb, user: USER }, scratch);
    await session.run('cd sub');
    assert.match(await session.run('pwd'), /^Current directory is \S+\\team\\sub\\$/m);
    assert.match(await session.run('open b'), /^open file \\sub\\b: for read\/write fnum \d+$/m);
    assert.equal(
      (await runClient('nfs-ls', [`nfs://127.0.0.1/team?version=4&nfsport=${ports.nfs}`])).code,
      0,
    );
    const held = await runClient('umount', [daemon.mountPoint('team')]);
    assert.match(held.output, /busy/);
    const { body } = await daemon.submit(
      daemon.text({ shares: [{ ...share, protocols: ['webdav'] }, other] }),
    );
    assert.equal(body.ok, true);
    await until(
      'the plain unmount succeeds',
      async () => (await runClient('umount', [daemon.mountPoint('team')])).code === 0,
      { timeoutMs: 20_000, everyMs: 200 },
    );
    assert.match(await bystander.run('ls'), /\bc\b/);
    assert.match(await session.run('ls'), /NT_STATUS_/);
  });

  it('that is mounted elsewhere, and export it again without other clients noticing', async () => {
    await daemon.submit(daemon.text({ shares: [share, other] }));
    await until(
      'the share is shown again',
      async () => (await smb('team', 'ls', { port: ports.smb, user: USER })).output.includes('sub'),
      { timeoutMs: 60_000 },
    );
    const session = new SmbSession('team', { port: ports.smb, user: USER }, scratch);
    await session.run('cd sub');
    const before = await daemon.rclonePid('team');
    await daemon.submit(daemon.text({ shares: [{ ...share, remote_path: 'photos' }, other] }));
    await until(
      'the share shows the other folder',
      async () => {
        await session.run('tcon team');
        await session.run('cd /');
        return /\bc\b/.test(await session.run('ls'));
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );
    assert.notEqual(await daemon.rclonePid('team'), before);
    assert.doesNotMatch(await daemon.log(), /not unmounted cleanly|not withdrawn/);
    assert.equal((await daemon.stop()).code, 0);
  });
});
