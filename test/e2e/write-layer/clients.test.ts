// @load loud
/**
 * Clients at work on a share with a write layer, over SMB, NFS, WebDAV and on the machine itself, while what
 * lies below fails.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { mkdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import { ask } from '../../../plugins/nfs/health-check.ts';
import { isStopped } from '../../../plugins/mount/layer/bindfs/hold.ts';
import { operation } from '../../../plugins/nfs/xdr.ts';
import { close, commit, setLength, writeUnstable } from '../../support/clients/nfs-file.ts';
import type { Source } from '../../support/clients/nfs-session.ts';
import { sumOfStream } from '../../support/clients/program-output.ts';
import { allProcesses } from '../../support/platform/processes.ts';
import { rightsOfRoots, rootsRights } from '../../support/platform/rights.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { DaemonWithClients, SHARE, SYNCED_MS } from '../../support/write-layer/daemon-with-clients.ts';
import { differences, treeOf } from '../../support/write-layer/folder-tree.ts';
import { checksumOf } from '../../support/nas/nas.ts';
import type { Nas } from '../../support/nas/nas.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const BOTH = 3;
const STALE: ReadonlySet<string | number> = new Set([70, 10_001]);

/** Text that an NFS client writes. */
function sourceOf(text: string): Source {
  const bytes = Buffer.from(text);
  return {
    read: (buffer, offset, length, position) =>
      Promise.resolve({ bytesRead: bytes.copy(buffer, offset, position, position + length) }),
  };
}

describe('a share with a write layer', () => {
  let office: DaemonWithClients;
  let nas: Nas;
  let daemon: Daemon;
  let root: string;

  const at = (path: string): string => office.at(path);
  const assertOnNas = (when: string): void => office.assertOnNas(when);
  const synced = (): Promise<void> => office.synced();
  const both = (script: string): Promise<void> => office.both(script);
  const bySmb = (commands: string): Promise<void> => office.bySmb(commands);
  const byWebdav = (method: string, path: string, to?: string): Promise<void> =>
    office.byWebdav(method, path, to);
  const file = (name: string, content: string): Promise<string> => office.file(name, content);

  const question = (...operations: Buffer[]) =>
    ask({ host: '127.0.0.1', port: office.access.ports.nfs }, operations, AbortSignal.timeout(10_000));
  /** The handle that NFS clients get for a file. */
  const handleOf = async (path: string): Promise<Buffer> => {
    const names = [SHARE, ...path.split('/')];
    const { results } = await question(
      operation.putRoot(),
      ...names.map((name) => operation.lookup(name)),
      operation.getHandle(),
    );
    const start = 8 * (names.length + 2) + 4;
    return results.subarray(start, start + results.readUInt32BE(start - 4));
  };
  /** The beginning of the file, or the error's number. */
  const readBy = async (handle: Buffer): Promise<string | number> => {
    const { status, results } = await question(operation.putHandle(handle), operation.read(16));
    return status === 0 ? results.toString('latin1', 24, 24 + results.readUInt32BE(20)).slice(0, 12) : status;
  };
  const pidOf = async (program: string, word = ''): Promise<number> => {
    const found = (await allProcesses()).find(
      ({ args, command }) =>
        args[0]?.endsWith(program) === true && command.includes(daemon.stateDir) && command.includes(word),
    );
    assert.ok(found, `no ${program} runs`);
    return found.pid;
  };

  before(async () => {
    office = await DaemonWithClients.open('layer-clients', {
      'team/a.bin': 300_000,
      'team/b.txt': 2_000,
      'team/tree/c': 100,
      'team/tree/sub/d': 200,
      'team/gone/e': 10,
    });
    ({ nas, daemon, root } = office);
  });
  after(() => office.close());

  it('takes what programs on the machine do with files and folders', async () => {
    await both(`
      printf new > new; printf more >> a.bin; cp a.bin saved.tmp; mv saved.tmp a.bin; mv b.txt renamed.txt; : > empty
      printf 'ü："$\\n' > 'strange ü：$ name'; mkdir made; printf 1 > made/1
      mv tree moved; printf 2 > moved/2; rm moved/c; rm -r gone`);
    await synced();
    // A call that waits while the NAS moves what was renamed may be refused once (docs/write-layer.md).
    await both(`
      again() { n=0; until "$@"; do n=$((n + 1)); [ $n -lt 50 ] || return 1; sleep 0.1; done; }
      truncate -s 10 a.bin; again mv renamed.txt a.bin; rm empty new; again mv moved tree; again mv tree/sub sub
      again mv made tree/made`);
    await synced();
  });

  it('takes what an SMB client writes, overwrites, renames and deletes', async () => {
    const [one, two] = [await file('one', 'one '.repeat(5_000)), await file('two', 'two '.repeat(3_000))];
    await bySmb(
      `mkdir smb; cd smb; put "${one}" a; put "${one}" b; put "${one}" c; mkdir in; put "${one}" in/x`,
    );
    await bySmb(
      `cd smb; put "${two}" a; rename b B; del c; rename in out; del ../a.bin; put "${two}" ../a.bin`,
    );
    await mkdir(at('smb/out'), { recursive: true });
    for (const [path, from] of [
      ['smb/a', two],
      ['smb/B', one],
      ['smb/out/x', one],
      ['a.bin', two],
    ] as const)
      cpSync(from, at(path));
    await synced();
    await bySmb('cd smb; del a; del out\\x; rmdir out; rename B ../B');
    await rm(at('smb/a'));
    await rm(at('smb/out'), { recursive: true });
    await rename(at('smb/B'), at('B'));
    await synced();
  });

  it('takes what a WebDAV client writes, overwrites, renames and deletes', async () => {
    const session = await office.webdavSession();
    const [one, two] = [await file('one', 'one '.repeat(5_000)), await file('two', 'two '.repeat(3_000))];
    await byWebdav('MKCOL', 'dav');
    for (const name of ['a', 'b', 'c']) await session.put(one, `dav/${name}`);
    await session.put(two, 'dav/a');
    await byWebdav('MOVE', 'dav/b', 'dav/B');
    await byWebdav('DELETE', 'dav/c');
    await byWebdav('MOVE', 'sub', 'dav/sub');
    await session.put(two, 'a.bin');
    await mkdir(at('dav'));
    cpSync(two, at('dav/a'));
    cpSync(one, at('dav/B'));
    await rename(at('sub'), at('dav/sub'));
    cpSync(two, at('a.bin'));
    await synced();
    assert.equal(await session.get('dav/a'), await checksumOf(two));
    await byWebdav('DELETE', 'dav/sub');
    await byWebdav('MOVE', 'dav/a', 'a.bin');
    await rm(at('dav/sub'), { recursive: true });
    await rename(at('dav/a'), at('a.bin'));
    await synced();
  });

  it('takes what an NFS client writes, overwrites, renames and deletes', async () => {
    const client = await office.nfsClient();
    const put = (path: string, text: string) =>
      client.write(`${SHARE}/${path}`, sourceOf(text), Buffer.byteLength(text));
    const [one, two] = ['one '.repeat(100_000), 'two '.repeat(3_000)];
    await client.makeFolder(`${SHARE}/nfs`);
    for (const name of ['a', 'b', 'c', 'd']) await put(`nfs/${name}`, one);
    await put('nfs/a', two);
    await client.rename(`${SHARE}/nfs`, 'b', 'B');
    await client.rename(`${SHARE}/nfs`, 'd', 'c');
    await client.rename(SHARE, 'tree', 'forest');
    await put('a.bin', two);
    await mkdir(at('nfs'));
    for (const [name, text] of Object.entries({ 'nfs/a': two, 'nfs/B': one, 'nfs/c': one, 'a.bin': two }))
      await writeFile(at(name), text);
    await rename(at('tree'), at('forest'));
    await synced();
    assert.equal(await sumOfStream(client.read(`${SHARE}/nfs/B`)), await checksumOf(at('nfs/B')));
    const file = await client.open(`${SHARE}/nfs/B`, 'open', { access: BOTH, deny: 0 });
    await setLength(client, file, 9);
    await writeUnstable(client, file, 20, Buffer.from('far'));
    await close(client, file);
    for (const name of ['a', 'c']) await client.remove(`${SHARE}/nfs/${name}`);
    await client.rename(SHARE, 'forest', 'tree');
    client.close();
    await office.sh(
      office.model,
      'truncate -s 9 nfs/B; truncate -s 20 nfs/B; printf far >> nfs/B; rm nfs/[ac]',
    );
    await rename(at('forest'), at('tree'));
    await synced();
  });

  it('lies behind processes of which each has the capabilities that it needs alone', async () => {
    const serving = (await allProcesses()).find(({ args }) => args[1] === 'serve' && args.includes(root));
    const rights = await Promise.all(
      [
        await daemon.rclonePid(SHARE),
        await pidOf('bindfs', '/through'),
        await pidOf('bindfs', '/handles'),
        serving?.pid ?? 0,
        await pidOf('smbd'),
        await pidOf('ganesha.nfsd'),
      ].map(rightsOfRoots),
    );
    assert.deepEqual(rights, [
      rootsRights('sys_admin', 'sys_ptrace', 'dac_read_search'),
      rootsRights('sys_admin'),
      rootsRights('sys_admin', 'dac_override', 'fowner'),
      rootsRights('dac_override', 'fowner'),
      rootsRights('setuid', 'setgid', 'dac_override', 'fowner'),
      rootsRights('dac_read_search', 'dac_override', 'setuid', 'setgid', 'chown', 'fowner'),
    ]);
  });

  it('gives NFS clients handles that outlive the server and the daemon, and no process that shows them', async () => {
    const handle = await handleOf('nfs/B');
    const isShown = async (one: Buffer) => String(await readBy(one)).startsWith('one one o');
    assert.ok(await isShown(handle));
    await daemon.end();
    assert.ok(await isShown(handle), 'without a daemon');
    await daemon.start();
    await daemon.healthy();
    assert.ok(await isShown(handle), 'with the next one');
    process.kill(await pidOf('ganesha.nfsd'), 'SIGKILL');
    await until('the next server knows it', () => isShown(handle), { timeoutMs: 30_000 });
    process.kill(await pidOf('bindfs', '/handles'), 'SIGKILL');
    await until('it is shown by another', async () => isShown(await handleOf('nfs/B')), {
      timeoutMs: 30_000,
    });
    assert.ok(STALE.has(await readBy(handle)));
  });

  it('leads no NFS client out of the share, whatever is put in the place of a folder', async () => {
    const client = await office.nfsClient();
    await client.makeFolder(`${SHARE}/etc`);
    await client.write(`${SHARE}/etc/passwd`, sourceOf('of the share'), 12);
    const handle = await handleOf('etc/passwd');
    assert.equal(await readBy(handle), 'of the share');
    await office.sh(root, 'mv etc away; ln -s /etc etc');
    assert.notEqual((await runClient('cat', [`${root}/etc/passwd`])).code, 0);
    const shown = await readBy(handle);
    assert.ok(typeof shown === 'number' || shown === 'of the share', `an old handle shows ${shown}`);
    await client.remove(`${SHARE}/etc`);
    await office.sh(root, 'rm -r away');
    client.close();
    await synced();
  });

  it("goes on with every client's writing through a kill -9 of rclone", async () => {
    const line = 'written slowly\n'.repeat(200);
    const slowly = `for n in 1 2 3 4 5 6 7 8; do printf "%s" "${line}"; sleep 0.3; done`;
    const [user, password] = office.access.user.split('%');
    const url = `http://127.0.0.1:${office.access.ports.webdav}/${encodeURIComponent(SHARE)}/slow-dav`;
    const smbUrl = [
      'smbclient',
      `'//127.0.0.1/${SHARE}'`,
      '-p',
      String(office.access.ports.smb),
      '-U',
      `'${office.access.user}'`,
      '-m',
      'SMB3',
    ];
    const writers = [
      `{ ${slowly}; } > '${root}/slow-local'`,
      `{ ${slowly}; } | curl -sSf -u '${user}:${password}' -T - '${url}'`,
      `{ ${slowly}; } | ${smbUrl.join(' ')} -c 'put /dev/stdin slow-smb'`,
    ].map((script) => runClient('sh', ['-c', script], 60_000));
    await until(
      'one is being written',
      async () => (await runClient('test', ['-s', `${root}/slow-local`])).code === 0,
      { timeoutMs: 10_000 },
    );
    const client = await office.nfsClient();
    const file = await client.open(`${SHARE}/slow-nfs`, 'make');
    const write = (place: number) => writeUnstable(client, file, place * line.length, Buffer.from(line));
    for (const place of [0, 1, 2, 3]) await write(place);
    const pid = await daemon.rclonePid(SHARE);
    const dav = await office.webdavSession();
    const put = await office.file('right-after', 'right after '.repeat(500));
    await until(
      'SMB has its file open',
      async () => (await runClient('test', ['-e', `${root}/slow-smb`])).code === 0,
      {
        timeoutMs: 10_000,
      },
    );
    const bindfs = await pidOf('bindfs', '/through');
    process.kill(pid, 'SIGKILL');
    // A call that comes before the daemon has noticed may fail (docs/write-layer.md).
    await until('calls wait', () => isStopped(bindfs), { timeoutMs: 5_000, everyMs: 2 });
    // What others would take for deleted, and a folder for empty, is waited for.
    await dav.put(put, 'right-after');
    assert.match(await dav.list(), /\/a\.bin<[^]*\/right-after</);
    assert.equal(await dav.get('tree/2'), await checksumOf(at('tree/2')));
    cpSync(put, at('right-after'));
    for (const place of [4, 5, 6, 7]) await write(place);
    await commit(client, file);
    await close(client, file);
    client.close();
    for (const { code, output } of await Promise.all(writers)) assert.equal(code, 0, output);
    for (const name of ['slow-local', 'slow-dav', 'slow-smb', 'slow-nfs'])
      await writeFile(at(name), line.repeat(8));
    await until('another rclone serves the share', async () => (await daemon.rclonePid(SHARE)) !== pid, {
      timeoutMs: 20_000,
    });
    await until(
      'its page says so',
      async () =>
        (await daemon.get(`/shares/${encodeURIComponent(SHARE)}`)).text.includes(
          'rclone ended and was replaced',
        ),
      { timeoutMs: 20_000 },
    );
    await daemon.healthy();
    await synced();
  });

  it('keeps what clients do while the NAS is away, says so, and brings it up when it is back', async () => {
    // Listings are read anew a moment after the last upload; those that are not there cannot be used in an
    // outage.
    await sleep(3_000);
    await nas.stop();
    await until(
      'the share says so',
      async () => /does not answer/.test((await daemon.share(SHARE)).health_message ?? ''),
      { timeoutMs: 30_000 },
    );
    const one = await file('one', 'away '.repeat(5_000));
    await bySmb(`put "${one}" away-smb; rename B B2`);
    await both('printf away > away; printf more >> away; mkdir during; printf 5 > during/5');
    cpSync(one, at('away-smb'));
    await rename(at('B'), at('B2'));
    await until('they wait', async () => (await daemon.share(SHARE)).dirty_count >= 4, { timeoutMs: 10_000 });
    assert.equal((await daemon.status()).all_synced, false);
    const { stdout } = await daemon.cli('queue', SHARE);
    assert.match(stdout, /changes wait/);
    await nas.start();
    await synced();
  });

  it('shows what others made of a file that was written here', async () => {
    await both('printf ours > shared');
    await synced();
    for (const folder of [nas.path('team'), office.model]) {
      await rm(`${folder}/shared`);
      await writeFile(`${folder}/shared`, 'of others, later');
      await utimes(`${folder}/shared`, 1_700_000_000, 1_700_000_000);
    }
    const refreshed = await daemon.cli('refresh', SHARE);
    assert.equal(refreshed.code, 0, refreshed.stderr);
    const shown = async (): Promise<string> => (await runClient('cat', [`${root}/shared`])).output;
    await until('users see theirs', async () => (await shown()) === 'of others, later', {
      timeoutMs: 30_000,
    });
    assert.deepEqual(JSON.parse((await daemon.cli('conflicts', SHARE, '--json')).stdout), []);
    await both('printf " and ours" >> shared');
    await synced();
  });

  it('keeps both versions when others change a file as well, and lets people choose', async () => {
    await both('printf first > two-sided');
    await synced();
    await nas.stop();
    await office.sh(root, 'printf ours > two-sided');
    await until('it waits', async () => (await daemon.share(SHARE)).dirty_count > 0, { timeoutMs: 10_000 });
    await writeFile(nas.path('team/two-sided'), 'of others');
    await utimes(nas.path('team/two-sided'), 1_700_000_000, 1_700_000_000);
    await nas.start();
    await daemon.synced(SYNCED_MS);
    const [conflict] = JSON.parse((await daemon.cli('conflicts', SHARE, '--json')).stdout) as {
      path: string;
      copy: string;
    }[];
    assert.equal(conflict?.path, 'two-sided');
    assert.equal(await readFile(nas.path('team/two-sided'), 'utf8'), 'of others');
    assert.equal(await readFile(nas.path(`team/${conflict.copy}`), 'utf8'), 'ours');
    const choose = () => daemon.cli('conflicts', SHARE, conflict.path, conflict.copy, 'mine');
    await until('one can choose', async () => (await choose()).code === 0, {
      timeoutMs: 30_000,
      everyMs: 500,
    });
    await writeFile(at('two-sided'), 'ours');
    assertOnNas('after a choice');
  });

  it('ends with exit 0 when all is on the NAS, and shows it again at the next start', async () => {
    await both(
      'for n in $(seq 20); do printf "$n" > during/$n; done; rm -r tree; mkdir last; printf l > last/l',
    );
    assert.equal((await daemon.stop('SIGTERM', SYNCED_MS)).code, 0);
    assertOnNas('though the daemon ended with 0');
    await daemon.start();
    await daemon.healthy();
    await until(
      'the share shows the same',
      async () => differences(await office.hands.tree(root), treeOf(office.model)).length === 0,
      { timeoutMs: 20_000 },
    );
    const left = Object.keys(treeOf(nas.path('team'))).filter((path) =>
      /mountkeeper|partial|recovered/.test(path),
    );
    assert.deepEqual(left, [], 'nothing of its own is on the NAS');
  });
});
