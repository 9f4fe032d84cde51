// @load quiet
// @start 1
// @long
/**
 * A NAS that answers all along, and has lost the disk or the path of a share: nothing that users write lands in another
 * place, and all of it goes up once the right one is back.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { smb } from '../../support/clients/smb.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { inForm } from '../../support/platform/long-form.ts';

const SOON_MS = 30_000;
const USER = { name: 'alice', password: 's3cret Wort' };
const MISSING = /its path is not there; nothing is sent until it is back/;
const EMPTIED = /its folder has lost all names that it had .*mountkeeper reconnect/;

/** What becomes of the folder, by the name of its share. */
const LOSSES = {
  gone: { isMountPointThere: false, isCut: false, said: MISSING },
  bare: { isMountPointThere: true, isCut: false, said: EMPTIED },
  'gone-in-outage': { isMountPointThere: false, isCut: true, said: MISSING },
  'bare-in-outage': { isMountPointThere: true, isCut: true, said: EMPTIED },
} as const;
type Loss = keyof typeof LOSSES;
/** Each way at least once. */
const TRIED = inForm<readonly Loss[]>({
  short: ['gone', 'bare-in-outage'],
  long: ['gone', 'bare', 'gone-in-outage', 'bare-in-outage'],
});
const OTHERS = ['working', 'fresh', 'cleared', 'renamed', 'meant'] as const;

interface Waiting {
  readonly path: string;
  readonly reason: string;
  readonly tries: number;
}

describe('a share whose folder the NAS has lost', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;
  let smbPort: number;
  const at = (share: string, path: string): string => `${daemon.mountPoint(share)}/${path}`;
  const write = (share: string, path: string): Promise<unknown> =>
    files.ask({ op: 'write', path: at(share, path), bytes: 20_000 });
  const list = (share: string, path: string): Promise<readonly string[]> =>
    files.ask({ op: 'list', path: at(share, path) });
  const message = async (share: string): Promise<string> => (await daemon.share(share)).health_message ?? '';
  const waiting = async (share: string): Promise<readonly Waiting[]> =>
    (await daemon.get<{ entries: readonly Waiting[] }>(`/api/queue/${share}`)).body.entries;
  const refresh = (share: string) =>
    daemon.request<{ ok: boolean; message: string }>('POST', `/api/refresh/${share}`);
  const says = (share: string, said: RegExp): Promise<unknown> =>
    until(`the status of ${share} says ${said}`, async () => said.test(await message(share)), {
      timeoutMs: SOON_MS,
    });
  const isShown = (share: string): Promise<boolean> =>
    smb.isShown(
      { scratch, ports: { smb: smbPort, nfs: 0, webdav: 0 }, user: `${USER.name}%${USER.password}` },
      share,
    );

  before(async () => {
    scratch = await createScratch('lost-root');
    const folders = [...Object.keys(LOSSES), 'working', 'cleared', 'renamed', 'meant'];
    nas = await Nas.create(scratch, {
      files: Object.fromEntries(
        folders.flatMap((folder) => [
          [`${folder}/seen/there.bin`, 5_000],
          [`${folder}/unseen/old.bin`, 5_000],
          [`${folder}/third/other.bin`, 5_000],
        ]),
      ),
    });
    await mkdir(nas.path('fresh'));
    relay = await Relay.start(scratch, { targetPort: nas.port });
    smbPort = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('near'), nas.connection('far', relay.port)],
      shares: [
        ...Object.entries(LOSSES).map(([name, { isCut }]) => ({
          name,
          connection: isCut ? 'far' : 'near',
          remote_path: name,
        })),
        ...OTHERS.map((name) => ({ name, connection: 'near', remote_path: name })),
      ],
      sections: { smb: { enabled: true, port: smbPort, users: [USER] } },
    });
    files = new Files(scratch);
    await daemon.start();
    await daemon.healthy([], 60_000);
    await daemon.synced(SOON_MS);
  });
  after(() => scratch.close());

  const lose = async (share: Loss): Promise<void> => {
    await rename(nas.path(share), nas.path(`${share}.away`));
    if (LOSSES[share].isMountPointThere) await mkdir(nas.path(share));
  };
  const bringBack = async (share: Loss): Promise<void> => {
    if (LOSSES[share].isMountPointThere) await rmdir(nas.path(share));
    await rename(nas.path(`${share}.away`), nas.path(share));
  };
  /** Also of folders: whatever was made there hides what is on the disk once it is back. */
  const assertUntouched = async (share: Loss): Promise<void> => {
    const there = await readdir(nas.path(share), { recursive: true }).catch(() => undefined);
    assert.deepEqual(there, LOSSES[share].isMountPointThere ? [] : undefined, share);
  };

  for (const share of TRIED) {
    const { isCut, said } = LOSSES[share];
    it(
      `${share}: holds what is written, says so, and sends it to the right folder`,
      { timeout: 180_000 },
      async () => {
        await until('SMB shows it', () => isShown(share), { timeoutMs: SOON_MS });
        assert.deepEqual(await list(share, 'seen'), ['there.bin']);
        if (isCut) {
          await relay.cut();
          await says(share, /does not answer/);
        }
        await lose(share);
        await write(share, 'seen/h.txt');
        await files.ask({ op: 'unlink', path: at(share, 'seen/there.bin') });
        if (isCut) await relay.restore();

        await says(share, said);
        await until(
          'it was tried again and again',
          async () => (await waiting(share)).reduce((sum, { tries }) => sum + tries, 0) >= 3,
          { timeoutMs: 60_000 },
        );
        await assertUntouched(share);
        for (const { reason } of await waiting(share)) assert.match(reason, said);
        assert.equal((await daemon.status()).all_synced, false);
        const { body } = await refresh(share);
        assert.equal(body.ok, false, JSON.stringify(body));
        await until('SMB shows no empty folder for it', async () => !(await isShown(share)), {
          timeoutMs: SOON_MS,
        });
        await assertUntouched(share);

        await bringBack(share);
        await daemon.synced(60_000);
        assert.equal((await readFile(nas.path(share, 'seen/h.txt'))).length, 20_000);
        assert.equal(await nas.has(`${share}/seen/there.bin`), false);
        await until('it says nothing any more', async () => (await message(share)) === '', {
          timeoutMs: SOON_MS,
        });
        await until(
          'a folder that nobody had listed shows what is in it',
          async () => (await list(share, 'unseen')).includes('old.bin'),
          { timeoutMs: SOON_MS },
        );
        await until('SMB shows it again', () => isShown(share), { timeoutMs: SOON_MS });
      },
    );
  }

  it(
    'working: what had just gone up when the folder was lost goes up again',
    { timeout: 180_000 },
    async () => {
      const names = Array.from({ length: 60 }, (_, index) => `seen/n${index}.txt`);
      const lost = async (): Promise<void> => {
        await until('some have gone up', () => nas.has('working/seen/n9.txt'), { timeoutMs: SOON_MS });
        await rename(nas.path('working'), nas.path('working.away'));
      };
      const losing = lost();
      for (const name of names) {
        await write('working', name);
        await sleep(100);
      }
      await losing;
      await until(
        'it holds the rest',
        async () => MISSING.test(await message('working')) || EMPTIED.test(await message('working')),
        { timeoutMs: SOON_MS },
      );
      assert.equal((await daemon.status()).all_synced, false);
      await rm(nas.path('working'), { recursive: true, force: true });
      await rename(nas.path('working.away'), nas.path('working'));
      await daemon.synced(60_000);
      for (const name of names) assert.ok(await nas.has(`working/${name}`), name);
    },
  );

  it('takes an empty folder at the first mount as it is', async () => {
    assert.equal(await message('fresh'), '');
    await write('fresh', 'first.txt');
    await daemon.synced(SOON_MS);
    assert.ok(await nas.has('fresh/first.txt'));
  });

  it(
    'lets users delete all that is in it, also when the daemon starts anew',
    { timeout: 120_000 },
    async () => {
      for (const [folder, name] of [
        ['seen', 'there.bin'],
        ['unseen', 'old.bin'],
        ['third', 'other.bin'],
      ] as const)
        await files.ask({ op: 'unlink', path: at('cleared', `${folder}/${name}`) });
      await files.ask({ op: 'rmdir', path: at('cleared', 'seen') });
      await files.ask({ op: 'rmdir', path: at('cleared', 'unseen') });
      await files.ask({ op: 'rmdir', path: at('cleared', 'third') });
      await daemon.synced(SOON_MS);
      assert.deepEqual(await readdir(nas.path('cleared')), []);
      daemon.signal('SIGKILL');
      await daemon.exit(SOON_MS);
      await daemon.start();
      await daemon.healthy(['cleared'], 60_000);
      await write('cleared', 'again.txt');
      await daemon.synced(SOON_MS);
      assert.ok(await nas.has('cleared/again.txt'));
      assert.equal(await message('cleared'), '');
    },
  );

  it('lets others rename all but one', async () => {
    await rename(nas.path('renamed/seen'), nas.path('renamed/seen before'));
    await rename(nas.path('renamed/unseen'), nas.path('renamed/unseen before'));
    assert.equal((await refresh('renamed')).body.ok, true);
    await write('renamed', 'third/new.txt');
    await daemon.synced(SOON_MS);
    assert.ok(await nas.has('renamed/third/new.txt'));
    assert.equal(await message('renamed'), '');
  });

  it(
    'takes another content as meant after a reconnect, and not after a restart',
    { timeout: 180_000 },
    async () => {
      await rm(nas.path('meant'), { recursive: true });
      await mkdir(nas.path('meant'));
      await writeFile(nas.path('meant', 'unlike.txt'), 'x');
      await write('meant', 'first.txt');
      await says('meant', EMPTIED);
      // Where the folder had been looked at just before, this one went there, and is sent once more.
      await rm(nas.path('meant', 'first.txt'), { force: true });
      await write('meant', 'mine.txt');
      daemon.signal('SIGKILL');
      await daemon.exit(SOON_MS);
      await daemon.start();
      await daemon.healthy(['meant'], 60_000);
      await says('meant', EMPTIED);
      assert.deepEqual(await readdir(nas.path('meant')), ['unlike.txt']);
      const { code } = await daemon.cli('reconnect', 'meant');
      assert.equal(code, 0);
      await daemon.synced(60_000);
      assert.deepEqual((await readdir(nas.path('meant'))).sort(), ['first.txt', 'mine.txt', 'unlike.txt']);
      assert.equal(await message('meant'), '');
    },
  );
});

describe('a share in a bucket', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('emptied-bucket');
  });
  after(() => scratch.close());

  it('takes writes as ever when others have deleted all that was in it', { timeout: 120_000 }, async () => {
    const nas = await Nas.create(scratch, {
      protocol: 's3',
      files: { 'photos/2024/a.bin': 5_000, 'photos/2025/b.bin': 5_000, 'photos/2026/c.bin': 5_000 },
    });
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'photos', connection: 'nas', remote_path: nas.remotePath('photos') }],
    });
    const files = new Files(scratch);
    await daemon.start();
    await daemon.healthy();
    await nas.clear('photos');
    await files.ask({ op: 'write', path: `${daemon.mountPoint('photos')}/new.bin`, bytes: 9_000 });
    await daemon.synced(SOON_MS);
    assert.equal((await readFile(`${await nas.contents('photos')}/new.bin`)).length, 9_000);
    assert.equal((await daemon.share('photos')).health_message, null);
  });
});
