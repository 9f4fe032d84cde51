/** Receipts: what is proved is listed with its hash; what is not is named, with the reason. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry, RemoteFiles, RemoteHash } from 'mountkeeper';
import type { Receipt } from '../../../../plugins/uploads/proof/receipt.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { UPLOAD_PREFIX } from '../../../../plugins/mount/rclone/remote-files.ts';
import { DETOUR_PREFIX } from '../../../../plugins/uploads/compare/plan-types.ts';
import { until } from '../../../support/platform/wait.ts';
import { refusal, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

const digest = (kind: string, content: string): string => createHash(kind).update(content).digest('hex');

describe('a receipt', () => {
  let share: TestShare;
  let uploader: ShareUploader;

  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    for (const path of ['d/theirs', 'other']) {
      writeFileSync(join(share.nas, path), `first ${path}`);
      utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
    }
    share.up();
    uploader = share.uploader();
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  const make = (path: string, of = uploader): Promise<Receipt> =>
    of.receipt(path, { signal: AbortSignal.timeout(20_000), onProgress: () => undefined });
  const proved = ({ proved: all }: Receipt): [string, string][] =>
    all.map(({ path, hash }) => [path, `${hash.kind} ${hash.value}`]);
  const paths = ({ unproved }: Receipt): string[] => unproved.map(({ path }) => path);
  const reasons = ({ unproved }: Receipt): string => unproved.map(({ reason }) => reason).join(' ');
  /** The same folder, through calls that a test replaces. */
  const put = (calls: (plain: RemoteFiles) => Partial<RemoteFiles>): void => {
    const plain = share.remote();
    share.files = Object.assign(Object.create(plain) as RemoteFiles, calls(plain));
    uploader = share.uploader();
  };
  const withHash =
    (kind: string) =>
    (plain: RemoteFiles): Partial<RemoteFiles> => ({
      stat: async (path, options) =>
        hashed(await plain.stat(path, options), path, options.hash === true && kind),
    });
  const hashed = (
    entry: RemoteEntry | undefined,
    path: string,
    kind: string | false,
  ): RemoteEntry | undefined =>
    entry?.kind !== 'file' || kind === false
      ? entry
      : { ...entry, version: { ...entry.version, hash: hashAt(path, kind) } };
  const hashAt = (path: string, kind: string): RemoteHash => ({
    kind,
    value: digest(kind, readFileSync(join(share.nas, path), 'utf8')).toUpperCase(),
  });

  it('lists what was uploaded, and what lies on the remote alone, each read back', async () => {
    writeFileSync(share.at('d/mine'), 'mine');
    await settle(uploader);
    const receipt = await make('d');
    assert.equal(receipt.root, 'd');
    assert.deepEqual(proved(receipt), [
      ['mine', `md5 ${digest('md5', 'mine')}`],
      ['theirs', `md5 ${digest('md5', 'first d/theirs')}`],
    ]);
    assert.deepEqual(
      receipt.proved.map(({ isCompared, bytes }) => [isCompared, bytes]),
      [
        [true, 4],
        [false, 14],
      ],
    );
    assert.deepEqual(receipt.unproved, []);
  });

  it("takes the remote's own hash where a list has an element for it, and reads back where not", async () => {
    put((plain) => ({ ...withHash('sha1')(plain), readBack: () => Promise.reject(new Error('not asked')) }));
    writeFileSync(share.at('d/mine'), 'mine');
    await settle(uploader);
    assert.deepEqual(proved(await make('d/mine')), [['mine', `sha1 ${digest('sha1', 'mine')}`]]);
    await uploader.stop();
    share.files = undefined;
    put(withHash('sha256'));
    assert.deepEqual(proved(await make('d/mine')), [['mine', `md5 ${digest('md5', 'mine')}`]]);
  });

  it('names what waits, and lists nothing of it', async () => {
    writeFileSync(share.at('d/mine'), 'mine');
    await settle(uploader);
    writeFileSync(share.at('d/mine'), 'mine, changed');
    writeFileSync(share.at('d/new'), 'new');
    rmSync(share.at('d/theirs'));
    uploader.pause(Date.now() + 60_000);
    const receipt = await make('d');
    assert.deepEqual(proved(receipt), []);
    assert.deepEqual(paths(receipt), ['d/mine', 'd/new', 'd/theirs']);
    assert.match(reasons(receipt), /paused until/);
    assert.deepEqual(paths(await make('other')), [], 'it is another path');
  });

  it('names what could not be brought back to its place: nobody knows what it holds', async () => {
    writeFileSync(share.at('d/mine'), 'mine');
    await settle(uploader);
    share.unrestored = new Set(['d/mine', 'd/lost', 'elsewhere']);
    const receipt = await make('d');
    assert.deepEqual(
      proved(receipt).map(([path]) => path),
      ['theirs'],
    );
    assert.deepEqual(paths(receipt), ['d/lost', 'd/mine']);
    assert.match(reasons(receipt), /could not be brought back/);
    const { waiting } = await uploader.verify('d', {
      signal: AbortSignal.timeout(20_000),
      onProgress: () => undefined,
    });
    assert.equal(waiting, 2);
  });

  it('waits for the end of a discard: what is away for a moment may come back', async () => {
    await uploader.stop();
    let goOn: () => void = () => undefined;
    const hold = new Promise<void>((resolve) => (goOn = resolve));
    let isAway = false;
    uploader = share.uploader(async (call, when) => {
      if (call !== 'takeOut' || when !== 'after' || isAway) return;
      isAway = true;
      await hold;
    });
    uploader.pause(Date.now() + 60_000);
    writeFileSync(share.at('d/mine'), 'mine');
    await uploader.look(AbortSignal.timeout(20_000));
    const version = uploader.queue().find(({ path }) => path === 'd/mine')?.version ?? '';
    const ends: string[] = [];
    const discarded = uploader.discard({ path: 'd/mine', version }).then(() => ends.push('discarded'));
    await until('it is away', async () => isAway, { timeoutMs: 10_000 });
    const made = make('d').then((receipt) => {
      ends.push('made');
      return receipt;
    });
    setTimeout(goOn, 200);
    const [receipt] = await Promise.all([made, discarded]);
    assert.deepEqual([ends, paths(receipt)], [['discarded', 'made'], []]);
  });

  it('names a folder whose move waits, whichever of its names is asked for', async () => {
    uploader.pause(Date.now() + 60_000);
    renameSync(share.at('d'), share.at('D'));
    for (const path of ['', 'd', 'D', 'D/theirs']) {
      const receipt = await make(path);
      assert.deepEqual(
        proved(receipt).filter(([one]) => one !== 'other'),
        [],
        path,
      );
      assert.ok(paths(receipt).includes('D'), path);
    }
  });

  it('names what is written while it is made', async () => {
    put((plain) => ({
      readBack: async (path, options) => {
        const hash = await plain.readBack(path, options);
        uploader.pause(Date.now() + 60_000);
        writeFileSync(share.at(path), 'written meanwhile');
        writeFileSync(share.at('d/new'), 'new');
        return hash;
      },
    }));
    const receipt = await make('d');
    assert.deepEqual(proved(receipt), []);
    assert.deepEqual(paths(receipt), ['d/new', 'd/theirs']);
  });

  it('names what others changed, removed, or change while it is read back', async () => {
    for (const name of ['changed', 'gone']) writeFileSync(share.at(name), 'mine');
    await settle(uploader);
    // The same size and time: its content alone tells.
    const { mtime } = statSync(join(share.nas, 'changed'));
    writeFileSync(join(share.nas, 'changed'), 'evil');
    utimesSync(join(share.nas, 'changed'), mtime, mtime);
    rmSync(join(share.nas, 'gone'));
    await uploader.stop();
    put((plain) => ({
      readBack: async (path, options) => {
        const hash = await plain.readBack(path, options);
        if (path === 'other') writeFileSync(join(share.nas, path), 'changed meanwhile');
        return hash;
      },
    }));
    const receipt = await make('');
    assert.deepEqual(
      proved(receipt).map(([path]) => path),
      ['d/theirs'],
    );
    assert.deepEqual(
      receipt.unproved.map(({ path, reason }) => `${path}: ${reason}`),
      [
        'changed: The remote has other content than what was written here.',
        'gone: The remote does not have it.',
        'other: It changed on the remote while it was read.',
      ],
    );
  });

  it('names a file that cannot be read, goes on, and gives up when the remote is silent', async () => {
    let remote: 'answers' | 'silent' = 'answers';
    put((plain) => ({
      readBack: (path, options) =>
        path === 'other'
          ? Promise.reject(refusal('The NAS says no.', remote))
          : plain.readBack(path, options),
    }));
    const receipt = await make('');
    assert.deepEqual(
      proved(receipt).map(([path]) => path),
      ['d/theirs'],
    );
    assert.match(reasons(receipt), /The NAS says no\./);
    remote = 'silent';
    await assert.rejects(make(''), /The NAS says no\./);
    await assert.rejects(make('nowhere'), /There is no 'nowhere' on the remote\./);
  });

  it('names what an unfinished upload has left, and a name that no list can hold', async () => {
    const left = ['clip.mov.1a2b3c4d.mk01234567', `${UPLOAD_PREFIX}1234-ab`, `${DETOUR_PREFIX}1234`];
    for (const name of [...left, 'bell\u0007']) writeFileSync(join(share.nas, 'd', name), 'x');
    const receipt = await make('d');
    assert.deepEqual(
      proved(receipt).map(([path]) => path),
      ['theirs'],
    );
    assert.equal(receipt.unproved.length, 4);
    await assert.rejects(make('d/bell\u0007'), /a character that a media hash list cannot hold/);
  });

  it('is none where the folder of the share is gone, and names a folder that cannot be listed', async () => {
    let gone: string | undefined;
    put((plain) => ({
      list: async (folder, options) => {
        if (folder === 'd' && gone === 'refused') throw refusal('Permission denied.');
        return folder === gone ? undefined : plain.list(folder, options);
      },
    }));
    gone = '';
    await assert.rejects(make(''), /The remote does not have the folder of the share\./);
    for (gone of ['d', 'refused']) {
      const receipt = await make('');
      assert.deepEqual(
        proved(receipt).map(([path]) => path),
        ['other'],
      );
      assert.deepEqual(paths(receipt), ['d']);
      assert.match(reasons(receipt), gone === 'd' ? /went away/ : /Permission denied/);
    }
  });

  it('believes no hash that is none', async () => {
    put((plain) => ({
      stat: async (path, options) => {
        const entry = await plain.stat(path, options);
        if (entry?.kind !== 'file') return entry;
        return { ...entry, version: { ...entry.version, hash: { kind: 'md5', value: '</md5><x/>' } } };
      },
    }));
    assert.deepEqual(proved(await make('other')), [['other', `md5 ${digest('md5', 'first other')}`]]);
  });
});
