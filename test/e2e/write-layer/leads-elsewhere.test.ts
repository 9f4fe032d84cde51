/** A connection leads to another NAS while files wait for the one that they were written for: none goes there. */
import assert from 'node:assert/strict';
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas, NAS_PASSWORD } from '../../support/nas/nas.ts';
import { currentRclone, nasRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const list = async (daemon: Daemon): Promise<string> =>
  (await runClient('ls', [daemon.mountPoint('work')], 10_000)).output;

const write = async (daemon: Daemon, name: string, text: string): Promise<void> => {
  const file = `${daemon.mountPoint('work')}/${name}`;
  const { code, output } = await runClient('sh', ['-c', `printf '%s' '${text}' > '${file}'`], 20_000);
  assert.equal(code, 0, output);
};

const says = (daemon: Daemon, what: RegExp): Promise<unknown> =>
  until(
    `the share says ${what.source}`,
    async () => {
      const { health_message: message } = await daemon.share('work');
      if (what.test(message ?? '')) return true;
      throw new Error(message ?? 'nothing');
    },
    { timeoutMs: 60_000, everyMs: 200 },
  );

/** Ends the share's rclone, as a crash would. */
const crash = async (daemon: Daemon): Promise<void> => {
  process.kill(await daemon.rclonePid('work'), 'SIGKILL');
};

describe('a file that an option of the connection refers to', () => {
  let scratch: Scratch;
  let own: Nas;
  let other: Nas;
  let daemon: Daemon;
  const [port, password] = ['port', 'password'];
  const put = (name: string, text: string | number): Promise<void> =>
    writeFile(scratch.path(name), `${text}\n`, { mode: 0o600 });

  before(async () => {
    scratch = await createScratch('elsewhere');
    own = await Nas.create(scratch, { name: 'own', files: { first: 10 } });
    other = await Nas.create(scratch, { name: 'other', files: { second: 20 } });
    await put(port, own.port);
    await put(password, NAS_PASSWORD);
    const { options, ...connection } = own.connection('nas');
    const references = { port: { file: scratch.path(port) }, pass: { file: scratch.path(password) } };
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [{ ...connection, options: { ...options, ...references } }],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('leads nothing that waits to another NAS when rclone is started anew', async () => {
    // Its listing is known from then on, so that files can be made in it without the NAS.
    assert.match(await list(daemon), /first/);
    await own.stop();
    await write(daemon, 'mine', 'for the first');
    await put(port, other.port);
    await crash(daemon);
    await says(daemon, /leads elsewhere by now.*reconnect/);
    assert.equal((await daemon.share('work')).dirty_count, 1);
    assert.deepEqual(await readdir(other.dir), ['second']);
    await put(port, own.port);
    await own.start();
    await daemon.healthy();
    await daemon.synced(60_000);
    assert.equal(await readFile(own.path('mine'), 'utf8'), 'for the first');
    assert.deepEqual(await readdir(other.dir), ['second']);
  });

  it('with a new password is read by the next rclone', async () => {
    await put(password, 'not the one');
    await crash(daemon);
    await says(daemon, /refused the user name or password/);
    await put(password, NAS_PASSWORD);
    await daemon.healthy();
    await write(daemon, 'later', 'too');
    await daemon.synced(60_000);
    assert.equal(await readFile(own.path('later'), 'utf8'), 'too');
  });

  it('leads the share to the other NAS by itself once nothing waits', async () => {
    await put(port, other.port);
    await crash(daemon);
    await until('the other NAS shows', async () => (await list(daemon)).includes('second'), {
      timeoutMs: 60_000,
      everyMs: 200,
    });
    await daemon.healthy();
    await write(daemon, 'theirs', 'for the second');
    await daemon.synced(60_000);
    assert.deepEqual((await readdir(other.dir)).sort(), ['second', 'theirs']);
    assert.equal(await own.has('theirs'), false);
  });
});

describe('a program that connects in place of rclone', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const folder = (nas: string): string => scratch.path(nas);
  /** Serves a folder of its own, unless a file says that it is away. */
  const program = (nas: string): string => scratch.path(`connect-${nas}`);
  const textFor = (nas: string): string =>
    daemon.text({
      connections: [{ name: 'nas', type: 'sftp', options: { host: 'nas', ssh: program(nas) } }],
    });

  before(async () => {
    scratch = await createScratch('detour');
    for (const nas of ['own', 'other']) {
      await runClient('mkdir', [folder(nas)]);
      await writeFile(`${folder(nas)}/${nas}.txt`, nas);
      const serve = `exec '${nasRclone()}' serve sftp --stdio --dir-cache-time 0s '${folder(nas)}'`;
      await writeFile(program(nas), `#!/bin/sh\n[ -e '${folder(nas)}.away' ] && exit 1\n${serve}\n`);
      await chmod(program(nas), 0o755);
    }
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [{ name: 'nas', type: 'sftp', options: { host: 'nas', ssh: program('own') } }],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('is changed while files wait: they wait on, and go up when the former one is back', async () => {
    assert.match(await list(daemon), /own/);
    assert.equal((await daemon.cli('queue', 'work', '--pause', '1h')).code, 0);
    await write(daemon, 'mine', 'for the first');
    await writeFile(`${folder('own')}.away`, '');
    await crash(daemon);
    await daemon.writeConfig(textFor('other'));
    await says(daemon, /new settings wait|former settings/);
    assert.deepEqual(await readdir(folder('other')), ['other.txt']);
    // Applied at once: what waits is set aside.
    assert.equal((await daemon.cli('reconnect', 'work')).code, 0);
    await until('the other one shows', async () => (await list(daemon)).includes('other.txt'), {
      timeoutMs: 60_000,
    });
    await daemon.healthy();
    await until('it waits', async () => (await daemon.share('work')).dirty_count === 1, {
      timeoutMs: 60_000,
    });
    assert.deepEqual(await readdir(folder('other')), ['other.txt']);
    await runClient('rm', [`${folder('own')}.away`]);
    await daemon.writeConfig(textFor('own'));
    await daemon.cli('reconnect', 'work');
    await until('the first one shows', async () => (await list(daemon)).includes('own.txt'), {
      timeoutMs: 60_000,
    });
    await daemon.synced(60_000);
    assert.equal(await readFile(`${folder('own')}/mine`, 'utf8'), 'for the first');
    assert.deepEqual(await readdir(folder('other')), ['other.txt']);
  });
});
