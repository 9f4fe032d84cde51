// @load quiet
/** `mountkeeper import` with real files of rclone and fstab lines, honest and hostile ones. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { readToml } from '../../../core/sdk/toml/edit.ts';
import { Daemon, runCli } from '../../support/daemon/daemon.ts';
import type { CliResult } from '../../support/daemon/daemon.ts';
import { TypedSession } from '../../support/daemon/typed-session.ts';
import { Nas, NAS_PASSWORD, NAS_USER } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

interface Document {
  readonly connections: readonly { name: string; type: string; options: Record<string, unknown> }[];
  readonly shares: readonly Record<string, unknown>[];
}

describe('mountkeeper import', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let conf: string;

  const create = (...words: string[]): void => {
    const { status, stderr } = spawnSync(
      currentRclone(),
      ['config', 'create', '--config', conf, '--non-interactive', '--obscure', ...words],
      { encoding: 'utf8' },
    );
    assert.equal(status, 0, stderr);
  };
  const take = (...words: string[]): Promise<CliResult> =>
    daemon.cli('import', ...words, '--from', conf, '--yes');
  const document = async (): Promise<Document> =>
    readToml(await readFile(daemon.configFile, 'utf8')) as unknown as Document;

  before(async () => {
    scratch = await createScratch('import');
    conf = scratch.path('rclone.conf');
    nas = await Nas.create(scratch, { files: { 'photos/a.bin': 40_000 } });
    daemon = await Daemon.create(scratch, { connections: [], shares: [] });
    await daemon.writeConfig(`# mine\nconnections = []\n${daemon.text()}`);
    create(
      'my nas',
      'sftp',
      'host=127.0.0.1',
      `port=${nas.port}`,
      `user=${NAS_USER}`,
      `pass=${NAS_PASSWORD}`,
    );
    create('office', 'smb', 'host=nas.example', 'user=ada', 'pass=geh"eim $(x)');
    create(
      'bucket',
      's3',
      'provider=Minio',
      'endpoint=http://127.0.0.1:9',
      'access_key_id=AK',
      'secret_access_key=S K',
    );
    create('hidden', 'crypt', 'remote=office:x', 'password=abc');
  });
  after(() => scratch.close());

  it('takes a remote over, tried at the NAS, its password in a file of mode 0600', async () => {
    const { code, stdout, stderr } = await take('rclone', 'my nas:photos');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /\[\[connections\]\][^]*name = "my-nas"[^]*type = "sftp"/);
    assert.match(stderr, /^careful: without known_hosts_file the host key of the NAS is not checked/m);
    assert.ok(!`${stdout}${stderr}`.includes(NAS_PASSWORD));
    const secret = `${daemon.configFile.replace(/[^/]*$/, '')}secrets/my-nas-pass`;
    assert.equal((await stat(secret)).mode & 0o777, 0o600);
    assert.equal(await readFile(secret, 'utf8'), `${NAS_PASSWORD}\n`);
    const text = await readFile(daemon.configFile, 'utf8');
    const doctor = await runCli(['doctor', '--config', daemon.configFile]);
    assert.match(doctor.stdout, /connections that check no host key: [^;]*my-nas; whoever/);
    assert.match(text, /^# mine\n/);
    assert.ok(!text.includes(NAS_PASSWORD));
    await daemon.start();
    await daemon.healthy(['my nas']);
  });

  it('is read by the daemon that runs, and keeps secrets of other backends apart as well', async () => {
    const refused = await take('rclone', 'bucket:team');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the NAS refuses.*--untried/);
    for (const [what, name] of [
      ['bucket:team', 'bucket'],
      ['office:Team', 'office'],
    ] as const) {
      const { code, stderr } = await take('rclone', what, '--untried');
      assert.equal(code, 0, `${name}: ${stderr}`);
    }
    const { connections, shares } = await document();
    const folder = `${daemon.configFile.replace(/[^/]*$/, '')}secrets`;
    assert.deepEqual(connections.find(({ name }) => name === 'bucket')?.options, {
      provider: 'Minio',
      endpoint: 'http://127.0.0.1:9',
      access_key_id: { file: `${folder}/bucket-access_key_id` },
      secret_access_key: { file: `${folder}/bucket-secret_access_key` },
    });
    assert.equal(await readFile(`${folder}/office-pass`, 'utf8'), 'geh"eim $(x)\n');
    assert.deepEqual(
      shares.map(({ name }) => name),
      ['my nas', 'bucket', 'office'],
    );
    await daemon.healthy(['my nas']);
    await until(
      'the file is read again',
      async () => (await daemon.status()).shares.some(({ name }) => name === 'office'),
      { timeoutMs: 40_000 },
    );
  });

  it('does not use up a token that can be renewed once, and says what comes of it', async () => {
    const before = await readFile(daemon.configFile, 'utf8');
    const from = scratch.path('cloud.conf');
    const token =
      '{"access_token":"a","token_type":"Bearer","refresh_token":"r","expiry":"2020-01-01T00:00:00Z"}';
    await writeFile(
      from,
      `[drive]\ntype = hidrive\ntoken = ${token}\n[other]\ntype = onedrive\ntoken = ${token}\n`,
      { mode: 0o600 },
    );
    const refused = await daemon.cli('import', 'rclone', 'drive', '--from', from, '--yes');
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /^careful: hidrive lets a token be renewed once: [^]*Nothing was tried or changed/m,
    );
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);
    const other = await daemon.cli('import', 'rclone', 'other', '--from', from, '--yes');
    assert.doesNotMatch(other.stderr, /renewed once/);
  });

  it('refuses what cannot be taken over, and leaves nothing behind', async () => {
    const before = await readFile(daemon.configFile, 'utf8');
    const secrets = await readdir(`${daemon.configFile.replace(/[^/]*$/, '')}secrets`);
    const hostile = scratch.path('hostile.conf');
    await writeFile(
      hostile,
      '[a]\ntype = sftp\nhost = x\npass = not-obscured!!\n[b]\ntype = sftp\nhost = x\n../../etc = y\n' +
        `[c]\ntype = sftp\nhost = ${'h'.repeat(100_000)}\n[d]\ntype = nowhere\nx = y\n` +
        '[e$(touch /tmp/mk-pwned)]\ntype = sftp\nhost = $(touch /tmp/mk-pwned)\n',
    );
    const from = (what: string, ...more: string[]) =>
      daemon.cli('import', 'rclone', what, '--from', hostile, '--yes', '--untried', ...more);
    for (const [what, reason] of [
      ['a', /option pass cannot be read/],
      ['b', /no backend of rclone has/],
      ['c', /longer than/],
      ['d', /knows no backend "nowhere"/],
      ['none', /no remote "none"/],
    ] as const) {
      const { code, stderr } = await from(what);
      assert.equal(code, 1, what);
      assert.match(stderr, reason);
    }
    const wrapped = await take('rclone', 'hidden:');
    assert.match(wrapped.stderr, /type crypt, which leads to another one/);
    await writeFile(hostile, `[a]\ntype = sftp\nhost = ${'h'.repeat(2_000_000)}\n`);
    assert.match((await from('a')).stderr, /larger than/);
    assert.match(
      (await daemon.cli('import', 'rclone', 'a', '--from', '/dev/zero', '--yes')).stderr,
      /plain file/,
    );
    assert.equal(existsSync('/tmp/mk-pwned'), false);
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);
    assert.deepEqual(await readdir(`${daemon.configFile.replace(/[^/]*$/, '')}secrets`), secrets);
  });

  it('starts no program that a remote names before somebody has agreed to it', async () => {
    const [file, mark] = [scratch.path('asked/mountkeeper.toml'), scratch.path('started')];
    const program = scratch.path('ssh.sh');
    await writeFile(program, `#!/bin/sh\ntouch '${mark}'\n`, { mode: 0o755 });
    const from = scratch.path('programs.conf');
    const remote = `[odd]\ntype = sftp\nhost = nas.example\nssh = ${program} s3cret\n`;
    await writeFile(from, remote, { mode: 0o600 });
    const words = ['import', 'rclone', 'odd', '--from', from, '--config', file];
    const { code, stdout, stderr } = await runCli([...words, '--yes']);
    assert.equal(code, 1, stdout);
    assert.match(stderr, /careful: the option "ssh"[^]*--untried/);
    assert.match(
      stderr,
      /^careful: the option ssh of "odd" is a command that rclone runs on [^\n]* known_hosts_file mean nothing then$/m,
    );
    // It is for the command to check the host key.
    assert.doesNotMatch(stderr, /host key/);
    assert.ok(!`${stdout}${stderr}`.includes('s3cret'), 'and is not shown');
    const session = TypedSession.start(scratch, words);
    await session.sees(/careful: the option "ssh"[^]*Try this at the NAS, and write it\? \[y\/N\]: $/);
    assert.equal(existsSync(mark), false, 'not before the answer');
    session.presses('\r');
    await session.sees(/Nothing was changed/);
    assert.equal(await session.ends(), 1);
    assert.equal(existsSync(mark), false);
    // And after a yes it is tried: the program is the one that was asked about.
    const agreed = TypedSession.start(scratch, words);
    await agreed.answers(/\[y\/N\]: $/, 'y');
    await agreed.sees(/the NAS refuses/);
    assert.equal(await agreed.ends(), 1);
    assert.equal(existsSync(mark), true);
    assert.equal(existsSync(file), false);
  });

  it('says once that an entry of sshfs has its host key checked no more', async () => {
    const from = scratch.path('sshfs');
    const entry = (known: string): string =>
      `ada@nas.example:/x /mnt/x sshfs IdentityFile=/k,UserKnownHostsFile=${known} 0 0\n`;
    const file = scratch.path('keys/mountkeeper.toml');
    const words = ['import', 'fstab', '/mnt/x', '--from', from, '--yes', '--untried', '--config', file];
    await writeFile(from, entry('/dev/null'));
    const { code, stderr } = await runCli(words);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stderr.match(/^careful: .*host key/gm),
      ['careful: without known_hosts_file the host key'],
      stderr,
    );
    assert.match(stderr, /^note: no file of known hosts was found$/m);
    await writeFile(scratch.path('hosts'), '');
    await writeFile(from, entry(scratch.path('hosts')));
    assert.doesNotMatch((await runCli(words)).stderr, /host key of the NAS|no file of known hosts/);
  });

  it('takes an entry of fstab with its credentials file', async () => {
    await writeFile(scratch.path('cred'), `username=ada\npassword=s"e $(c) ret\n`, { mode: 0o600 });
    await writeFile(
      scratch.path('fstab'),
      `//nas.example/Team/x /mnt/team cifs credentials=${scratch.path('cred')},ro 0 0\n`,
    );
    const file = scratch.path('new/mountkeeper.toml');
    const words = ['import', 'fstab', '/mnt/team', '--from', scratch.path('fstab'), '--untried'];
    assert.equal((await runCli([...words, '--config', file])).code, 64, 'nobody agrees here');
    assert.equal(existsSync(file), false);
    const { code, stdout, stderr } = await runCli([...words, '--yes', '--config', file]);
    assert.equal(code, 0, stderr);
    assert.ok(!`${stdout}${stderr}`.includes('$(c)'));
    assert.equal(await readFile(scratch.path('new/secrets/team-pass'), 'utf8'), 's"e $(c) ret\n');
    const { shares } = readToml(await readFile(file, 'utf8')) as unknown as Document;
    assert.deepEqual(shares, [{ name: 'team', connection: 'team', remote_path: 'Team/x', read_only: true }]);
    assert.equal((await runCli(['check', '--config', file])).code, 0);
  });
});
