/** A connection leads to another NAS while files wait for the one that they were written for: none goes there. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas, NAS_PASSWORD } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
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
    { timeoutMs: 20_000, everyMs: 200 },
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
