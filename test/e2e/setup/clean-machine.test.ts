// @load loud
/**
 * From an empty configuration to a file on the LAN by one command, and the same file after everything was
 * killed.
 */
import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { localFile, smb } from '../../support/exports/client-programs.ts';
import { checksumOf, Nas, NAS_PASSWORD, NAS_USER } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { isAlive, processesNaming, signalProcess } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const LAN = 'ada%love lace';

describe('a clean machine', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let port: number;
  let written: { readonly path: string; readonly sum: string };

  const client = (commands: string) => smb('2024 photos', commands, { port, user: LAN });
  const served = () =>
    until('the share over SMB', async () => (await client('ls')).code === 0, { timeoutMs: 60_000 });
  const fetched = async (name: string): Promise<string> => {
    const path = scratch.path(`fetched ${name}`);
    assert.equal((await client(`get "${name}" "${path}"`)).code, 0, name);
    return checksumOf(path);
  };
  const flags = () => [
    'init',
    '--address',
    `sftp://127.0.0.1:${nas.port}`,
    '--user',
    NAS_USER,
    '--password-file',
    scratch.path('nas-password'),
    '--folders',
    'photos/2024 photos',
    '--lan-user',
    'ada',
    '--lan-password-file',
    scratch.path('lan-password'),
  ];

  before(async () => {
    scratch = await createScratch('clean-machine');
    nas = await Nas.create(scratch, { files: { 'photos/2024 photos/a.raw': 300_000, 'other/x': 1 } });
    port = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [],
      shares: [],
      sections: { smb: { port, listen: ['127.0.0.1'] } },
    });
    await daemon.writeConfig(`# mine\nconnections = []\n${daemon.text()}`);
    await writeFile(scratch.path('nas-password'), `${NAS_PASSWORD}\n`, { mode: 0o600 });
    await writeFile(scratch.path('lan-password'), 'love lace\n', { mode: 0o600 });
    written = await localFile(scratch, 'written', 200_000);
  });
  after(() => scratch.close());

  it('gets a NAS and a share by the flags of init, before the first start', async () => {
    const before = await readFile(daemon.configFile, 'utf8');
    const shown = await daemon.cli(...flags());
    assert.equal(shown.code, 64, 'without --yes nothing is written where nobody can be asked');
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);

    const { code, stdout, stderr } = await daemon.cli(...flags(), '--yes');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /\[\[connections\]\]/);
    assert.match(stdout, new RegExp(String.raw`smb://127\.0\.0\.1:${port}/2024%20photos`));
    assert.match(stdout, /sudo mount -t cifs '\/\/127\.0\.0\.1\/2024 photos' \/mnt -o 'username=ada,port=/);
    assert.ok(
      !`${stdout}${stderr}`.includes(NAS_PASSWORD) && !stdout.includes('love lace'),
      'no password is shown',
    );
    const text = await readFile(daemon.configFile, 'utf8');
    assert.match(text, /^# mine\n/);
    assert.equal((await stat(daemon.configFile)).mode & 0o007, 0, 'passwords stand in it');
  });

  it('serves a file of the NAS, and takes one, over SMB', async () => {
    await daemon.start();
    await served();
    assert.equal(await fetched('a.raw'), await nas.checksum('photos/2024 photos/a.raw'));
    assert.equal((await client(`put "${written.path}" "from the LAN.bin"`)).code, 0);
    assert.equal(await fetched('from the LAN.bin'), written.sum);
  });

  it('has the same file after all its processes were killed', async () => {
    const own = (
      await Promise.all(
        [daemon.stateDir, daemon.mountRoot, daemon.cacheDir, daemon.configFile].map(processesNaming),
      )
    ).flat();
    for (const one of own) signalProcess(one, 'SIGKILL');
    assert.ok(own.length >= 3, 'a daemon, an rclone and an smbd');
    await until('all of them have ended', () => own.every(({ pid }) => !isAlive(pid)), { timeoutMs: 10_000 });
    await daemon.start();
    await served();
    assert.equal(await fetched('from the LAN.bin'), written.sum);
    await daemon.synced(60_000);
    assert.equal(await nas.checksum('photos/2024 photos/from the LAN.bin'), written.sum);
  });

  it('keeps its shares when init is run once more', async () => {
    const before = await readFile(daemon.configFile, 'utf8');
    const again = await daemon.cli(...flags(), '--yes');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /has shares already: 2024 photos; they stay as they are, and --add adds more/);
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);
    const wrong = flags().with(flags().indexOf('--folders') + 1, 'nowhere');
    const refused = await daemon.cli(...wrong, '--yes', '--add');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the folder "nowhere" of the NAS cannot be used/);
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);
  });

  it('gets a second share while the daemon runs, in the same words', async () => {
    const other = flags().with(flags().indexOf('--folders') + 1, 'other');
    const { code, stdout, stderr } = await daemon.cli(...other, '--yes', '--add');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Done; the daemon is mounting/);
    await daemon.healthy(['other', '2024 photos']);
  });
});
