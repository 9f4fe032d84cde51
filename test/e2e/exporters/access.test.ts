// @load loud
// @long
/**
 * Who may enter which share: four people, four shares, three protocols, and what each may do there is what the
 * document says, before and after it is changed, in open sessions too.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { SessionsAnswer, SessionView } from '../../../plugins/sessions/routes.ts';
import type { Access } from '../../support/clients/protocols.ts';
import { NfsClient } from '../../support/clients/nfs-session.ts';
import { NfsFault, say } from '../../support/clients/nfs-wire.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { flagged, localFile, notices, SmbSession } from '../../support/exports/client-programs.ts';
import { dav, davUrl, VISITING } from '../../support/exports/visits.ts';
import type { Lists, Visitor } from '../../support/exports/visits.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { PeopleMatrix } from '../../support/people/matrix.ts';
import type { Office } from '../../support/people/model.ts';
import { until } from '../../support/platform/wait.ts';
import { inForm } from '../../support/platform/long-form.ts';

const PEOPLE: readonly Visitor[] = ['anna', 'ben', 'carl', 'dora'].map((name, index) => ({
  name,
  password: `pw of ${name}`,
  address: `127.0.0.${index + 1}`,
}));
const [ANNA, BEN, CARL] = PEOPLE as [Visitor, Visitor, Visitor, Visitor];
const LOGINS = PEOPLE.map(({ name, password }) => ({ name, password }));
const SHARES = ['open', 'team', 'look', 'boss'] as const;
const LARGE = 45_000_000;
/** Some megabytes that were sent already stand in the buffers of the kernel, and come to the client all the same. */
const SLOW = '1500k';
/** More than those buffers hold: who gets so much on top of what another one got is being sent more. */
const BUFFERED = 6_000_000;
/** What "at once" may take on a machine that is busy with other tests. */
const AT_ONCE = { timeoutMs: 10_000 };
const ACCESS_DENIED = [13, 30];
/** A person of it comes from a machine of her own. */
const OFFICE: Office = {
  typed: { anna: ANNA.password, ben: BEN.password },
  addresses: { anna: '127.0.0.11', ben: '127.0.0.12' },
  smb: LOGINS.slice(0, 2),
  webdav: LOGINS.slice(0, 2),
  guest: false,
  groups: { office: ['anna', 'ben'] },
  allowed: ['127.0.0.0/8'],
  shares: { open: {}, team: { users: ['@office'] } },
};
/** Each takes something from somebody, over all three protocols or two. */
const CHANGES: readonly ((office: Office) => string)[] = [
  (office) => {
    Object.assign(office.shares['team'] ?? {}, {
      read_only_users: ['ben'],
      read_only_clients: ['127.0.0.12'],
    });
    return 'ben may only look into team';
  },
  (office) => {
    for (const login of [...office.smb, ...office.webdav])
      if (login.name === 'anna') login.password = 'another';
    return 'anna has another password and does not know it';
  },
  (office) => {
    office.smb = office.webdav = [{ name: 'anna', password: 'told' }];
    office.groups['office'] = ['anna'];
    Object.assign(office.shares['team'] ?? {}, { read_only_users: ['anna'] });
    office.typed['anna'] = 'told';
    office.allowed = ['127.0.0.11'];
    return 'ben has no account, and no machine';
  },
  (office) => {
    Object.assign(office.shares['open'] ?? {}, { protocols: ['nfs'] });
    Object.assign(office.shares['team'] ?? {}, { protocols: ['webdav'] });
    return 'open is shown over NFS alone, and team over WebDAV';
  },
];

type Share = (typeof SHARES)[number];
/** What anna, ben, carl and dora may do: `w`rite, `r`ead, `-` nothing. */
type Table = Readonly<Record<Share, string>>;

interface Keys {
  readonly users?: string[];
  readonly read_only_users?: string[];
  readonly clients?: string[];
  readonly read_only_clients?: string[];
}
type Named = Partial<Record<Share, Keys>>;

const FIRST: Named = {
  team: {
    users: ['@office'],
    read_only_users: ['carl'],
    clients: ['127.0.0.0/30'],
    read_only_clients: ['127.0.0.3'],
  },
  look: {
    read_only_users: ['@lookers', 'anna'],
    read_only_clients: ['127.0.0.1', '127.0.0.4'],
  },
  boss: { users: ['dora'], clients: ['127.0.0.4'] },
};
const GROUPS = { office: ['anna', 'ben'], lookers: ['dora'] };

describe('who may enter which share', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let access: Access;

  const submit = async (named: Named, sections: object): Promise<void> => {
    const shares = SHARES.map((name) => ({
      name,
      connection: 'nas',
      remote_path: name,
      ...named[name],
    }));
    const { body } = await daemon.submit(daemon.text({ shares, sections: sections as never }));
    assert.equal(body.message, 'Config applied successfully');
  };
  /** The protocol's table, as its clients find it. */
  const found = async (protocol: keyof typeof VISITING): Promise<Table> => {
    const lists: Lists = new Map();
    const rows = SHARES.map(async (share) => {
      let row = '';
      for (const visitor of PEOPLE) {
        const { list, read, write, rename } = await VISITING[protocol](access, visitor, share, lists);
        const who = `${visitor.name} in ${share} over ${protocol}`;
        assert.deepEqual({ rename, list }, { rename: write, list: read }, who);
        row += write && read ? 'w' : read ? 'r' : write ? '!' : '-';
      }
      return [share, row] as const;
    });
    return Object.fromEntries(await Promise.all(rows)) as unknown as Table;
  };
  const foundEverywhere = async (): Promise<Record<keyof typeof VISITING, Table>> => ({
    smb: await found('smb'),
    webdav: await found('webdav'),
    nfs: await found('nfs'),
  });
  /** Until each server has read the document: while it does so, it may list a share and refuse it, and end sessions. */
  const settled = async (tables: Partial<Record<keyof typeof VISITING, Table>>): Promise<void> => {
    for (const protocol of ['smb', 'nfs', 'webdav'] as const) {
      const table = tables[protocol];
      if (table === undefined) continue;
      const isSo = async (): Promise<boolean> => {
        assert.deepEqual(await found(protocol), table, protocol);
        return true;
      };
      await until(`it is so over ${protocol}`, isSo, { timeoutMs: 15_000 });
    }
  };
  const everywhere = (table: Table) => ({
    smb: table,
    webdav: table,
    nfs: table,
  });
  const smbSession = ({ name, password }: Visitor): SmbSession =>
    new SmbSession('team', { port: access.ports.smb, user: `${name}%${password}` }, scratch);
  let begun = 0;
  /** A transfer by curl that takes half a minute unless somebody ends it. `received`: bytes that came so far. */
  const slow = ({ name, password }: Visitor, path: string, ...options: string[]) => {
    const output = scratch.path(`received-${(begun += 1)}`);
    const login = ['--user', `${name}:${password}`, '--limit-rate', SLOW];
    const args = [
      '--disable',
      '--silent',
      '--output',
      output,
      '--write-out',
      '%{http_code} %{size_download}',
      ...login,
      ...options,
      davUrl(access, path),
    ];
    const child = spawn('curl', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let said = '';
    child.stdout.on('data', (piece: Buffer) => (said += piece.toString()));
    scratch.defer(() => void child.kill('SIGKILL'));
    return {
      ended: once(child, 'close').then(([code]) => ({ code: code as number, said })),
      isOver: () => child.exitCode !== null,
      received: () => statSync(output, { throwIfNoEntry: false })?.size ?? 0,
    };
  };
  type Transfer = ReturnType<typeof slow>;
  /** By what was opened before: 0, or the server's error. */
  const writeOn = (client: NfsClient, { handle, state }: Awaited<ReturnType<NfsClient['open']>>) =>
    client.wire.call(say.putHandle(handle), say.writeAt(state, 0, Buffer.from('more'))).then(
      () => 0,
      (error: unknown) => (error instanceof NfsFault ? error.status : -1),
    );

  before(async () => {
    scratch = await createScratch('access');
    nas = await Nas.create(scratch, {
      files: Object.fromEntries(SHARES.map((share) => [`${share}/large.bin`, LARGE])),
    });
    for (const share of SHARES) await writeFile(nas.path(share, 'seed.txt'), `the seed of ${share}\n`);
    const ports = {
      smb: await freePort(),
      nfs: await freePort(),
      webdav: await freePort(),
    };
    access = { scratch, ports, user: '' };
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: SHARES.map((name) => ({
        name,
        connection: 'nas',
        remote_path: name,
      })),
      sections: {
        smb: { enabled: true, port: ports.smb, users: LOGINS },
        webdav: { enabled: true, port: ports.webdav, users: LOGINS },
        nfs: {
          enabled: true,
          port: ports.nfs,
          allowed_clients: ['127.0.0.0/8'],
        },
      },
    });
    await daemon.start();
    await daemon.healthy();
    await flagged(daemon, {
      smbd_running: true,
      webdav_running: true,
      nfs_exported: true,
    });
  });
  after(() => scratch.close());

  it('is everybody while no share names anybody, and then what the document says', async () => {
    assert.deepEqual(
      await foundEverywhere(),
      everywhere({ open: 'wwww', team: 'wwww', look: 'wwww', boss: 'wwww' }),
    );
    await submit(FIRST, { groups: GROUPS });
    const expected = { open: 'wwww', team: 'wwr-', look: 'r--r', boss: '---w' };
    await settled(everywhere(expected));
    await flagged(daemon, {
      smbd_running: true,
      webdav_running: true,
      nfs_exported: true,
    });
  });

  it('shows who is connected, and ends one session when asked to, and nothing of others', async () => {
    const [anna, ben] = [smbSession(ANNA), smbSession(BEN)];
    for (const session of [anna, ben]) assert.match(await session.run('ls'), /seed\.txt/);
    const client = await NfsClient.connect(access.ports.nfs, BEN.address);
    assert.ok((await client.list('team')).includes('seed.txt'));
    const slower = ['--limit-rate', '300k'];
    const [annaReads, benReads] = [ANNA, BEN].map((visitor) =>
      slow(visitor, 'open/large.bin', ...slower),
    ) as [Transfer, Transfer];
    await until(
      'both are sent something',
      () => annaReads.received() > 0 && benReads.received() > 0,
      AT_ONCE,
    );
    const listed = async () => {
      const { code, stdout, stderr } = await daemon.cli('sessions', '--json');
      assert.equal(code, 0, stderr);
      return (JSON.parse(stdout) as SessionsAnswer).sessions;
    };
    // Over WebDAV, what they did in other shares a moment ago is there, too.
    const of = (all: readonly SessionView[], protocol: string, user: string): SessionView => {
      const found = all.find(
        (one) =>
          one.protocol === protocol &&
          one.user === user &&
          (protocol !== 'webdav' || one.shares?.includes('open')),
      );
      assert.ok(found, `${protocol} ${user}`);
      return found;
    };
    const known = await listed();
    const [smb, webdav, nfs] = [
      of(known, 'smb', 'anna'),
      of(known, 'webdav', 'anna'),
      known.find(({ protocol, address }) => protocol === 'nfs' && address === BEN.address),
    ];
    assert.deepEqual([smb.shares, smb.address, smb.can_end], [['team'], '127.0.0.1', true]);
    assert.ok(Math.abs(Date.parse(String(smb.since)) - Date.now()) < 60_000, String(smb.since));
    assert.ok(Number(smb.bytes_to_client) > 100 && Number(smb.bytes_from_client) > 100);
    assert.deepEqual([webdav.shares, webdav.address, webdav.can_end], [['open'], '127.0.0.1', true]);
    assert.ok(Number(webdav.bytes_to_client) > 0);
    assert.ok(nfs);
    assert.deepEqual([nfs.user, nfs.shares, nfs.can_end], [null, null, false]);

    // An upload whose end is not there yet.
    const pipe = scratch.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const sending = anna.run(`put "${pipe}" half`, 60_000);
    const rest = createWriteStream(pipe);
    await new Promise((resolve) => rest.write(Buffer.alloc(1_000_000), resolve));
    for (const { id } of [smb, webdav]) {
      const { code, stdout, stderr } = await daemon.cli('sessions', 'end', id);
      assert.deepEqual([code, stdout.trim(), stderr], [0, 'Session ended', '']);
    }
    const left = await listed();
    assert.deepEqual(
      left.filter(({ id }) => id === smb.id || id === webdav.id),
      [],
    );
    assert.deepEqual([of(left, 'smb', 'ben').shares, of(left, 'webdav', 'ben').shares], [['team'], ['open']]);
    rest.on('error', () => undefined).end(Buffer.alloc(1_000_000));
    // It may end by writing to the connection that is closed.
    const said = await sending;
    assert.match(anna.isOpen ? `${said}${await anna.run('ls')}` : 'NT_STATUS_', /NT_STATUS_/);
    assert.doesNotMatch(await ben.run('ls half'), / 2000000 /);
    const { code } = await annaReads.ended;
    assert.notEqual(code, 0);
    assert.equal(benReads.isOver(), false);
    assert.match(await ben.run('ls'), /seed\.txt/);
    const refused = await daemon.cli('sessions', 'end', nfs.id);
    assert.deepEqual([refused.code, /cannot be ended from here/.test(refused.stderr)], [1, true]);
    client.close();
    await until(
      'the record tells of it',
      async () => {
        const { stdout } = await daemon.cli('audit');
        return /sessions\/\{id\}\/end.*"user":"anna"/.test(stdout);
      },
      AT_ONCE,
    );
    const again = smbSession(ANNA);
    assert.match(await again.run('ls'), /seed\.txt/);
    // A torn file is none of the next test's.
    await again.run('rm half');
    for (const session of [again, ben]) session.close();
  });

  it('ends at once what somebody has open who loses the share, and nothing of others', async () => {
    const { path } = await localFile(scratch, 'sent', LARGE);
    const sessions = {
      anna: smbSession(ANNA),
      ben: smbSession(BEN),
      carl: smbSession(CARL),
    };
    for (const session of Object.values(sessions)) assert.match(await session.run('ls'), /seed\.txt/);
    const open = async (visitor: Visitor) => {
      const client = await NfsClient.connect(access.ports.nfs, visitor.address);
      return {
        client,
        file: await client.open(`team/open-${visitor.name}`, 'make'),
      };
    };
    const [anna, ben] = [await open(ANNA), await open(BEN)];
    assert.deepEqual([await writeOn(anna.client, anna.file), await writeOn(ben.client, ben.file)], [0, 0]);
    const lock = [
      '--data',
      '<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>' +
        '<D:locktype><D:write/></D:locktype></D:lockinfo>',
    ];
    assert.equal((await dav(access, ANNA, ['LOCK', 'team/seed.txt', ...lock])).status, 200);
    assert.equal((await dav(access, BEN, ['PUT', 'team/seed.txt', '--data', 'x'])).status, 423);
    const transfers = {
      annaReads: slow(ANNA, 'team/large.bin'),
      annaWrites: slow(ANNA, 'team/half.bin', '--upload-file', path),
      annaElsewhere: slow(ANNA, 'open/large.bin'),
      benReads: slow(BEN, 'team/large.bin'),
    };
    await until(
      'the upload has begun',
      async () => {
        const { text } = await dav(access, BEN, ['PROPFIND', 'team/', '--header', 'Depth: 1']);
        return text.includes('half.bin');
      },
      AT_ONCE,
    );

    // Only the group and the clients are others.
    const clients = {
      clients: ['127.0.0.2'],
      read_only_clients: ['127.0.0.3'],
    };
    await submit(
      { ...FIRST, team: { ...FIRST.team, ...clients } },
      { groups: { ...GROUPS, office: ['ben'] } },
    );
    await until(
      'her transfers and her session end',
      async () =>
        transfers.annaReads.isOver() &&
        transfers.annaWrites.isOver() &&
        /NT_STATUS_/.test(sessions.anna.isOpen ? await sessions.anna.run('ls') : 'NT_STATUS_'),
      AT_ONCE,
    );
    await until('her handle is refused', async () => (await writeOn(anna.client, anna.file)) !== 0, AT_ONCE);
    assert.ok(ACCESS_DENIED.includes(await writeOn(anna.client, anna.file)));
    for (const transfer of [transfers.annaReads, transfers.annaWrites]) {
      const { code, said } = await transfer.ended;
      assert.notEqual(code, 0, said);
    }
    // Others, and she elsewhere, go on in the same connections.
    assert.deepEqual([transfers.benReads.isOver(), transfers.annaElsewhere.isOver()], [false, false]);
    for (const session of [sessions.ben, sessions.carl]) assert.match(await session.run('ls'), /seed\.txt/);
    assert.equal(await writeOn(ben.client, ben.file), 0);
    // Nothing of half an upload, and no lock, is left in their way.
    await until(
      'the half upload is taken back',
      async () => (await dav(access, BEN, ['GET', 'team/half.bin'])).status === 404,
      AT_ONCE,
    );
    assert.equal(
      (await dav(access, BEN, ['PUT', 'team/seed.txt', '--data-binary', 'the seed of team\n'])).status,
      204,
    );
    await sessions.anna.run('tcon team');
    assert.match(sessions.anna.isOpen ? await sessions.anna.run('ls') : 'NT_STATUS_', /NT_STATUS_/);
    for (const { client } of [anna, ben]) client.close();
    const expected = everywhere({ open: 'wwww', team: '-wr-', look: 'r--r', boss: '---w' });
    await settled(expected);
    const enough = transfers.annaReads.received() + BUFFERED;
    await until(
      'others, and she elsewhere, are sent more than what was under way',
      () => transfers.benReads.received() > enough && transfers.annaElsewhere.received() > enough,
      AT_ONCE,
    );
  });

  it('lets who may only look from now on read on, and write nothing by what was open', async () => {
    const [ben, carl] = [smbSession(BEN), smbSession(CARL)];
    for (const session of [ben, carl]) assert.match(await session.run('ls'), /seed\.txt/);
    const client = await NfsClient.connect(access.ports.nfs, BEN.address);
    const file = await client.open('team/open-ben', 'make');
    assert.equal(await writeOn(client, file), 0);
    const team = {
      users: ['@office', 'carl'],
      read_only_users: ['BEN'],
      clients: ['127.0.0.3'],
      read_only_clients: ['127.0.0.2'],
    };
    // The keys of the share `boss` are taken away again.
    await submit({ team, look: FIRST.look ?? {} }, { groups: GROUPS });
    await until('the handle is refused', async () => (await writeOn(client, file)) !== 0, AT_ONCE);
    client.close();
    const { path } = await localFile(scratch, 'small', 10);
    await until(
      'the session may not write',
      async () => {
        const said = await ben.run(`put "${path}" late`);
        if (/NT_STATUS_(NETWORK_NAME_DELETED|CONNECTION)/.test(said)) await ben.run('tcon team');
        return /NT_STATUS_(ACCESS_DENIED|MEDIA_WRITE_PROTECTED)/.test(said);
      },
      AT_ONCE,
    );
    assert.match(await ben.run('ls'), /seed\.txt/);
    assert.equal((await dav(access, BEN, ['OPTIONS', 'team/'])).status, 200);
    const xml = '<?xml version="1.0"?><D:propertyupdate xmlns:D="DAV:"/>';
    for (const request of [
      ['DELETE', 'team/seed.txt'],
      ['MKCOL', 'team/made'],
      ['PROPPATCH', 'team/seed.txt', '--data', xml],
      ['LOCK', 'team/seed.txt', '--data', xml],
      ['COPY', 'team/seed.txt', '--header', `Destination: ${davUrl(access, 'team/copy')}`],
    ] as const)
      assert.equal((await dav(access, BEN, [...request])).status, 403, request[0]);
    const table = { open: 'wwww', team: 'wrw-', look: 'r--r', boss: 'wwww' };
    const expected = { ...everywhere(table), nfs: { ...table, team: '-rw-' } };
    await settled(expected);
  });

  it('is no guest, and nobody who has lost the account', async () => {
    const carl = smbSession(CARL);
    assert.match(await carl.run('ls'), /seed\.txt/);
    const left = LOGINS.filter(({ name }) => name !== 'carl');
    const transfer = slow(CARL, 'team/large.bin');
    await until('the transfer has begun', () => transfer.received() > 0, AT_ONCE);
    await submit(
      { ...FIRST, team: { users: ['anna'] } },
      {
        groups: GROUPS,
        smb: { users: left, guest: true },
        webdav: { users: left },
      },
    );
    await until(
      'the session ends',
      async () => !carl.isOpen || /NT_STATUS_/.test(await carl.run('ls')),
      AT_ONCE,
    );
    await until('the transfer ends', () => transfer.isOver(), AT_ONCE);
    assert.notEqual((await transfer.ended).code, 0);
    // To SMB, carl is a guest by now.
    const table = { open: 'ww-w', team: 'w---', look: 'r--r', boss: '---w' };
    const expected = { webdav: table, smb: { ...table, open: 'wwww' } };
    await settled(expected);
    await submit({ ...FIRST, team: { users: ['anna'] } }, { groups: GROUPS, webdav: { users: [] } });
    await until(
      'everybody is let in over WebDAV',
      async () => (await dav(access, { name: '', password: '' }, ['GET', 'open/seed.txt'])).status === 200,
      AT_ONCE,
    );
    const nobody = { name: '', password: '' };
    for (const share of ['team', 'look', 'boss'])
      assert.equal((await dav(access, nobody, ['GET', `${share}/seed.txt`])).status, 404, share);
    assert.equal((await dav(access, ANNA, ['GET', 'team/seed.txt'])).status, 404);
    assert.doesNotMatch((await dav(access, nobody, ['GET', ''])).text, /team|look|boss/);
    const told = [
      /the share 'team' names its users and WebDAV has none/,
      /the share 'team' names its users, and every user of the machines in/,
    ];
    await until(
      'the notices say both',
      async () => {
        const text = await notices(daemon);
        return told.every((one) => one.test(text));
      },
      AT_ONCE,
    );
  });

  it('is what the configuration says for two, right after each change, and in what is open', async () => {
    const shares = SHARES.map((name) => ({ name, connection: 'nas', remote_path: name }));
    const matrix = new PeopleMatrix(OFFICE, { daemon, access, shares, random: Math.random });
    try {
      assert.deepEqual(await matrix.begin(), []);
      for (const change of inForm({ short: CHANGES.slice(0, 2), long: CHANGES })) {
        const { changed, held, said, wrong } = await matrix.step(change);
        assert.deepEqual(wrong, [], said);
        assert.ok(changed > 0 && held > 0, `${said}: ${changed} cells, ${held} open`);
      }
    } finally {
      matrix.close();
    }
  });
});
