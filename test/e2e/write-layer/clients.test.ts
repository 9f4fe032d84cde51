// @load loud
/**
 * Clients at work on a share with a write layer, over SMB, WebDAV and on the machine itself, while what lies
 * below fails.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { mkdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { DaemonWithClients, SHARE, SYNCED_MS } from '../../support/write-layer/daemon-with-clients.ts';
import { differences, treeOf } from '../../support/write-layer/folder-tree.ts';
import { checksumOf } from '../../support/nas/nas.ts';
import type { Nas } from '../../support/nas/nas.ts';
import { sleep, until } from '../../support/platform/wait.ts';

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

  it('is refused over NFS in plain words, and exported over the others', async () => {
    const isSaid = async (): Promise<boolean> =>
      /NFS cannot show a share with a write layer/.test((await daemon.get('/api/notices')).text);
    await until('NFS says why', isSaid, { timeoutMs: 20_000 });
  });

  it('takes what programs on the machine do with files and folders', async () => {
    await both(`
      printf new > new; printf more >> a.bin; cp a.bin saved.tmp; mv saved.tmp a.bin; mv b.txt renamed.txt; : > empty
      printf 'ü："$\\n' > 'strange ü：$ name'; mkdir made; printf 1 > made/1
      mv tree moved; printf 2 > moved/2; rm moved/c; rm -r gone`);
    await synced();
    await both(
      'truncate -s 10 a.bin; mv renamed.txt a.bin; rm empty new; mv moved tree; mv tree/sub sub; mv made tree/made',
    );
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
    const pid = await daemon.rclonePid(SHARE);
    process.kill(pid, 'SIGKILL');
    for (const { code, output } of await Promise.all(writers)) assert.equal(code, 0, output);
    for (const name of ['slow-local', 'slow-dav', 'slow-smb']) await writeFile(at(name), line.repeat(8));
    await until('another rclone serves the share', async () => (await daemon.rclonePid(SHARE)) !== pid, {
      timeoutMs: 20_000,
    });
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
    await daemon.cli('refresh', SHARE);
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
