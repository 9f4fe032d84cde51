// @load quiet
/** The guide of `mountkeeper init` on a terminal: what a person sees, types, and breaks off. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { readToml } from '../../../core/sdk/toml/edit.ts';
import { runCli } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { TypedSession } from '../../support/daemon/typed-session.ts';
import { Nas, NAS_PASSWORD, NAS_USER } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const LAN_PASSWORD = 'fünf Birnen';

describe('mountkeeper init on a terminal', () => {
  let scratch: Scratch;
  let nas: Nas;

  before(async () => {
    scratch = await createScratch('init');
    nas = await Nas.create(scratch, {
      files: { 'Photos/2024/a': 1, 'Photos/2025/a': 1, 'team/x': 1, 'odd \u001b[31m name/x': 1 },
    });
  });
  after(() => scratch.close());

  const start = (file: string, ...args: string[]): TypedSession =>
    TypedSession.start(scratch, ['init', '--config', file, ...args]);
  const reachNas = async (session: TypedSession): Promise<void> => {
    await session.answers(/Address of the NAS.*: $/, `sftp://127.0.0.1:${nas.port}`);
    await session.answers(/User name there.*: $/, NAS_USER);
    await session.answers(/Password there.*: $/, NAS_PASSWORD);
  };

  it('leads from nothing to a configuration, and shows no password', async () => {
    const file = scratch.path('new/deep/mountkeeper.toml');
    const session = start(file);
    await session.answers(/Address of the NAS.*: $/, `sftp://127.0.0.1:${nas.port}`);
    await session.answers(/User name there.*: $/, NAS_USER);
    await session.answers(/Password there.*: $/, 'wrong-one');
    await session.sees(/The NAS refuses: .*(?:password|auth|login|denied|unable)/i);
    await session.answers(/Address of the NAS \[sftp:.*: $/, '');
    await session.answers(/User name there \[keeper\]: $/, '');
    await session.answers(/Password there.*: $/, NAS_PASSWORD);
    await session.answers(/Which folders.*: $/, '9');
    await session.sees(/there is no folder "9" here/);
    const listed = await session.sees(/Which folders.*: $/);
    assert.match(listed, /1 {2}odd .\[31m name\r?\n/);
    assert.ok(!listed.includes('\u001b[31m'), 'names reach no terminal as orders');
    session.presses('Photos/\r');
    await session.answers(/Folders in \/Photos:[^]*Which folders.*: $/, '1,2025');
    await session.answers(/Name by which people on the LAN sign in.*\[keeper\]: $/, 'ada');
    await session.answers(/Password for them.*: $/, LAN_PASSWORD);
    const preview = await session.sees(/Write this\? \[Y\/n\]: $/);
    assert.match(preview, /remote_path = "Photos\/2024"/);
    assert.match(preview, /warning: without known_hosts_file the host key of the NAS is not checked/);
    const { output } = await runClient('sh', [
      '-c',
      `ssh-keyscan -p ${nas.port} 127.0.0.1 | ssh-keygen -l -f -`,
    ]);
    const [fingerprint = 'none'] = /SHA256:\S{43}/.exec(output) ?? [];
    assert.ok(preview.includes(fingerprint), `${fingerprint} in ${preview}`);
    assert.equal(existsSync(file), false, 'nothing is written before the answer');
    session.presses('\r');
    const done = await session.sees(/Start the daemon now/);
    assert.equal(await session.ends(), 0);
    assert.ok(done.includes(`smb://${hostname()}/2024`), done);
    assert.ok(!done.includes('127.0.0.1'), 'the server listens everywhere by what was written');
    for (const secret of ['wrong-one', NAS_PASSWORD, LAN_PASSWORD])
      assert.ok(!session.shown.includes(secret), secret);
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    const document = readToml(await readFile(file, 'utf8')) as {
      shares: { name: string; remote_path: string }[];
      smb: { users: { name: string; password: string }[] };
    };
    assert.deepEqual(
      document.shares.map(({ name, remote_path: path }) => [name, path]),
      [
        ['2024', 'Photos/2024'],
        ['2025', 'Photos/2025'],
      ],
    );
    assert.deepEqual(document.smb.users, [{ name: 'ada', password: LAN_PASSWORD }]);
    assert.equal((await runCli(['check', '--config', file])).code, 0);
  });

  it('leaves nothing behind when it is broken off at any question', async () => {
    const file = scratch.path('never/mountkeeper.toml');
    const steps: readonly ((session: TypedSession) => Promise<unknown>)[] = [
      (session) => session.sees(/Address of the NAS.*: $/),
      async (session) => {
        await session.answers(/Address of the NAS.*: $/, `sftp://127.0.0.1:${nas.port}`);
        await session.answers(/User name there.*: $/, NAS_USER);
        await session.sees(/Password there.*: $/);
      },
      async (session) => {
        await reachNas(session);
        await session.sees(/Which folders.*: $/);
      },
      async (session) => {
        await reachNas(session);
        await session.answers(/Which folders.*: $/, 'team');
        await session.answers(/sign in.*: $/, '-');
        await session.sees(/Write this\?.*: $/);
      },
    ];
    for (const [index, step] of steps.entries()) {
      const session = start(file);
      await step(session);
      // Ctrl-C, and at one of them the end of the input.
      session.presses(index === 2 ? '\u0004' : '\u0003');
      await session.sees(/interrupted; nothing was changed/);
      assert.equal(await session.ends(), 1);
      assert.equal(existsSync(scratch.path('never')), false, `step ${index}`);
    }
  });

  it('takes no password from the command line, and says what is missing where nobody can be asked', async () => {
    const file = scratch.path('none.toml');
    const secret = await runCli(['init', '--config', file, '--address', 'nas', '--password', 'p']);
    assert.deepEqual([secret.code, /--password-file/.test(secret.stderr)], [64, true]);
    const silent = await runCli(['init', '--config', file]);
    assert.deepEqual([silent.code, /--address and --yes/.test(silent.stderr)], [64, true]);
    assert.equal(existsSync(file), false);
  });
});
