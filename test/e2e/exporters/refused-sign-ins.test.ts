/** Wrong passwords over SMB and WebDAV, by real clients: what the record of changes has of them, and what not. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { notices, runClient, smb } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { residentBytes } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until, within } from '../../support/platform/wait.ts';

const FLOOD = 1_000;
const WRONG = 'geheim';
const HOSTILE = 'e"vil\n{"event":"config"}\u202e\u0007';
const SOON = { timeoutMs: 20_000, everyMs: 200 };
const MOST_GROWTH_BYTES = 80 * 1_048_576;

interface Line {
  readonly event: string;
  readonly protocol?: string;
  readonly user?: string;
  readonly from?: { readonly address: string };
  readonly count: number;
  readonly addresses?: Readonly<Record<string, number>>;
}

describe('sign-ins that are refused', { timeout: 300_000 }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let ports: { readonly smb: number; readonly webdav: number };
  const record = (): Promise<string> => readFile(`${daemon.stateDir}/audit/audit.log`, 'utf8');
  const lines = async (): Promise<Line[]> =>
    (await record())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
      .filter(({ event, protocol, addresses }) =>
        event === 'refused' ? protocol !== undefined : event === 'more-attempts' && addresses !== undefined,
      );
  const counted = async (protocol: string, user: string): Promise<number> =>
    (await lines())
      .filter((line) => line.protocol === protocol && line.user === user)
      .reduce((sum, { count }) => sum + count, 0);
  const overSmb = async (user: string): Promise<string> =>
    (await smb('team', 'ls', { port: ports.smb, user })).output;
  const overWebdav = async (user: string, ...more: readonly string[]): Promise<string> =>
    (
      await runClient(
        'curl',
        [
          '-q',
          '-s',
          '-o',
          '/dev/null',
          '-w',
          '%{http_code}\n',
          '-u',
          user,
          ...more,
          `http://127.0.0.1:${ports.webdav}/`,
        ],
        60_000,
      )
    ).output;

  before(async () => {
    scratch = await createScratch('refused-sign-ins');
    const nas = await Nas.create(scratch, { files: { 'team/plain.bin': 5_000 } });
    ports = { smb: await freePort(), webdav: await freePort() };
    const users = [{ name: 'alice', password: 'right' }];
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: {
        smb: { enabled: true, port: ports.smb, users },
        webdav: { enabled: true, port: ports.webdav, users },
      },
    });
    await daemon.start();
    await daemon.healthy();
    const isIn = async () =>
      (await overSmb('alice%right')).includes('plain.bin') && (await overWebdav('alice:right')) === '200\n';
    await until('the share is shown', isIn, { timeoutMs: 30_000 });
  });
  after(() => scratch.close());

  it('have a line with name, address and protocol, and never with the password; who comes in has none', async () => {
    assert.match(await overSmb('alice%right'), /plain\.bin/);
    for (const user of ['alice', 'nobody-here', HOSTILE])
      assert.match(await overSmb(`${user}%${WRONG}`), /LOGON_FAILURE/);
    assert.equal(await overWebdav(`alice:${WRONG}`), '401\n');
    await until('each has a line', async () => (await lines()).length >= 4, SOON);
    const found = (await lines()).map(({ protocol, user, from, count }) =>
      [protocol, user, from?.address, count].join(' '),
    );
    assert.deepEqual(
      new Set(found),
      new Set([
        'smb alice 127.0.0.1 1',
        `smb ${HOSTILE} 127.0.0.1 1`,
        'smb nobody-here 127.0.0.1 1',
        'webdav alice 127.0.0.1 1',
      ]),
    );
    assert.doesNotMatch(await record(), new RegExp(WRONG));
    assert.doesNotMatch(await record(), /[\u0000-\u0009\u000b-\u001f\u202e]/);
    assert.doesNotMatch(await notices(daemon), /sign-ins/);
    const { stdout } = await daemon.cli('audit');
    assert.match(stdout, /refused 127\.0\.0\.1 protocol="webdav" user="alice" count=1 /);
  });

  it('leave few lines in a flood, and little in memory; a notice names the address', async () => {
    const before = residentBytes(daemon.pid);
    const client = spawn(
      'smbclient',
      ['//127.0.0.1/IPC$', '-p', String(ports.smb), '-U', 'alice%right', '-m', 'SMB3'],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    );
    scratch.defer(() => void client.kill('SIGKILL'));
    client.stdin.end(`${`logon flood ${WRONG}\n`.repeat(FLOOD)}exit\n`);
    await within('the flood over SMB', 120_000, once(client, 'close'));
    const answers = await overWebdav(
      `flood:${WRONG}`,
      ...Array.from({ length: FLOOD - 1 }, () => [
        '-o',
        '/dev/null',
        `http://127.0.0.1:${ports.webdav}/`,
      ]).flat(),
    );
    assert.equal(answers.match(/^4/gm)?.length, FLOOD);
    await until(
      'a notice',
      async () => /at least 20 sign-ins from 127\.0\.0\.1 were/.test(await notices(daemon)),
      SOON,
    );
    const growth = residentBytes(daemon.pid) - before;
    assert.ok(growth < MOST_GROWTH_BYTES, `${growth} bytes more`);
    assert.match(await overSmb('alice%right'), /plain\.bin/);
    // What came before these has been told when they are.
    await overSmb(`last%${WRONG}`);
    await overWebdav(`last:${WRONG}`);
    for (const protocol of ['smb', 'webdav'])
      await until(`${protocol} is told`, async () => (await counted(protocol, 'last')) === 1, SOON);
    await daemon.stop();
    for (const protocol of ['smb', 'webdav']) assert.equal(await counted(protocol, 'flood'), FLOOD, protocol);
    assert.ok((await lines()).length < 25, `${(await lines()).length} lines`);
    assert.equal(await counted('smb', 'alice'), 1);
  });

  it('are written down as well where they came while no daemon ran', async () => {
    await daemon.start();
    await until('the servers are up', async () => (await overSmb('alice%right')).includes('plain.bin'), SOON);
    await until('the servers are up', async () => (await overWebdav('alice:right')) === '200\n', SOON);
    await daemon.end();
    assert.match(await overSmb(`away%${WRONG}`), /LOGON_FAILURE/);
    assert.equal(await overWebdav(`away:${WRONG}`), '401\n');
    await daemon.start();
    for (const protocol of ['smb', 'webdav'])
      await until(`${protocol} is told`, async () => (await counted(protocol, 'away')) === 1, SOON);
    assert.equal(await counted('smb', 'alice'), 1, 'and nothing twice');
    assert.equal(await counted('smb', 'flood'), FLOOD);
    assert.doesNotMatch(await record(), new RegExp(WRONG));
  });

  it('are none of a client that asks without a password, as all do first', async () => {
    const { output } = await runClient(
      'smbclient',
      ['-N', '-p', String(ports.smb), '-U', 'alice', '-L', '//127.0.0.1'],
      60_000,
    );
    assert.match(output, /LOGON_FAILURE|ACCESS_DENIED/);
    await overSmb(`after%${WRONG}`);
    await until('another one has a line', async () => (await counted('smb', 'after')) === 1, SOON);
    assert.equal(await counted('smb', 'alice'), 1);
  });

  it('are none of guests who are let in by any name', async () => {
    await daemon.submit(daemon.text({ sections: { smb: { guest: true } } }));
    const isIn = async () => (await overSmb(`guest-1%${WRONG}`)).includes('plain.bin');
    await until('guests are let in', isIn, SOON);
    const before = await counted('smb', 'guest-1');
    assert.equal(await isIn(), true);
    await overSmb(`alice%${WRONG}`);
    await until('another one has a line', async () => (await counted('smb', 'alice')) === 2, SOON);
    assert.equal(await counted('smb', 'guest-1'), before);
  });
});
