/** What the panel of a share's files asks for, and what it makes of the answers. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createClock } from '../../../core/platform/clock.ts';
import { createProcesses } from '../../../core/platform/processes/processes.ts';
import { pino } from 'pino';
import type { QueuedUpload, UnsavedFile } from 'mountkeeper';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../plugins/dashboard/view.ts';
import { FolderLists, changesOf, folderOf } from '../../../plugins/files/listing.ts';
import { filesPanel } from '../../../plugins/files/panel.ts';

const folder = mkdtempSync(join(tmpdir(), 'mk-files-'));
const processes = createProcesses({ stateDir: folder, clock: createClock(), log: pino({ level: 'silent' }) });

/** A view of a cache as a mounter offers it. */
function contextOf(
  body: string,
  isMounted = true,
  unsaved: readonly UnsavedFile[] | 'unknown' = [],
  { queue = [], stats = {} }: { readonly queue?: readonly QueuedUpload[]; readonly stats?: object } = {},
): never {
  const module = join(folder, `view-${Math.random()}.mjs`);
  writeFileSync(
    module,
    `export const openCacheView = (given) => ({ list: async (folder) => { ${body} }, ...UNSAVED });
     const UNSAVED = ${unsaved === 'unknown' ? '{}' : `{ unsaved: async () => (${JSON.stringify(unsaved)}) }`};`,
  );
  const mount = isMounted
    ? { cacheAccess: () => ({ module, parameters: { word: 'secret word' } }), uploadQueue: async () => queue }
    : undefined;
  const shares = { list: () => [{ spec: { share: { name: 'files' } }, mount, figures: { stats } }] };
  return {
    use: (name: string) => ({ shares, processes, clock: createClock(), plugins: { list: () => [] } })[name],
    find: () => undefined,
    signal: new AbortController().signal,
  } as never;
}

describe('the files of a share', () => {
  after(() => rmSync(folder, { recursive: true }));

  it('are listed by a process beside the daemon, in order, folders first', async () => {
    const body =
      "return { folders: ['b', 'a'], files: [{ name: 'x10', bytes: 1, modifiedMs: 2, " +
      "isCached: true }, { name: 'x9', bytes: given.word.length, modifiedMs: 0, " +
      "isCached: folder === 'sub' }] };";
    const answer = await new FolderLists(contextOf(body)).open('files', 'sub');
    assert.deepEqual(
      [answer.folders, answer.files.map(({ name }) => name), answer.hidden],
      [['a', 'b'], ['x9', 'x10'], 0],
    );
    assert.deepEqual(answer.files[0], { name: 'x9', bytes: 11, modifiedMs: 0, isCached: true });
  });

  it("show no file twice that is being uploaded, though rclone's half of it lies on the remote", async () => {
    const file = (name: string) => ({ name, bytes: 9, modifiedMs: 0, isCached: false });
    const listed = ['a.raw', 'a.raw.5be486bb.partial', 'other.5be486bb.partial'].map(file);
    const body = `return { folders: [], files: ${JSON.stringify(listed)} };`;
    const unsaved: UnsavedFile = { name: 'a.raw', bytes: 10, modifiedMs: 1, state: 'uploading' };
    const { files } = await new FolderLists(contextOf(body, true, [unsaved])).open('files', '');
    assert.deepEqual(
      files.map(({ name, unsaved: state }) => [name, state]),
      [
        ['a.raw', 'uploading'],
        ['other.5be486bb.partial', undefined],
      ],
    );
  });

  it('say what waits by the queue of the mount where its cache cannot tell', async () => {
    const body =
      "return { folders: [], files: [{ name: 'old', bytes: 1, modifiedMs: 2, isCached: false }] };";
    const file = (path: string, traits: Partial<QueuedUpload> = {}): QueuedUpload => ({
      path,
      bytes: 7,
      isUploading: false,
      failures: 0,
      changedAt: 5,
      ...traits,
    });
    const queue = [
      file('sub/old', { isUploading: true }),
      file('sub/new', { failures: 3 }),
      file('sub/next'),
      file('sub/deeper/x'),
      file('other'),
    ];
    const { files } = await new FolderLists(contextOf(body, true, 'unknown', { queue })).open('files', 'sub');
    assert.deepEqual(files, [
      { name: 'new', bytes: 7, modifiedMs: 5, isCached: true, unsaved: 'failed' },
      { name: 'next', bytes: 7, modifiedMs: 5, isCached: true, unsaved: 'waiting' },
      { name: 'old', bytes: 7, modifiedMs: 5, isCached: true, unsaved: 'uploading' },
    ]);
  });

  it('are told anew by the queue, and the remote is asked again only when something arrives', async () => {
    const asked = join(folder, 'asked');
    const listed = (count: number) =>
      writeFileSync(asked, JSON.stringify([{ name: 'a', bytes: count, modifiedMs: 2, isCached: false }]));
    const body = `const { readFileSync } = await import('node:fs');
      const read = readFileSync(${JSON.stringify(asked)}, 'utf8');
      if (read === '') throw new Error('the remote said no');
      return { folders: [], files: JSON.parse(read) };`;
    const queue: QueuedUpload[] = [];
    const wait = (...paths: string[]): void =>
      void queue.splice(
        0,
        queue.length,
        ...paths.map((path) => ({ path, bytes: 7, isUploading: false, failures: 0, changedAt: 5 })),
      );
    const lists = new FolderLists(contextOf(body, true, 'unknown', { queue }));
    const again = async () => {
      const { files, failed } = await lists.again('files', '');
      return [files.map(({ name, bytes, unsaved }) => [name, bytes, unsaved]), failed];
    };
    listed(1);
    await lists.open('files', '');
    listed(2);
    wait('a', 'new', 'sub/x');
    const both = [
      ['a', 7, 'waiting'],
      ['new', 7, 'waiting'],
    ];
    assert.deepEqual(await again(), [both, undefined], 'what is in the queue, without the remote');
    wait('new');
    assert.deepEqual(
      await again(),
      [
        [
          ['a', 2, undefined],
          ['new', 7, 'waiting'],
        ],
        undefined,
      ],
      'what the remote has since "a" has arrived',
    );
    writeFileSync(asked, '');
    wait('a');
    const stands = [['a', 7, 'waiting']];
    assert.deepEqual(await again(), [stands, 'the remote said no'], 'its former listing');
    await assert.rejects(lists.open('files', ''), /the remote said no/);
  });

  it('are said to have changed by the queue, and by the figures while nothing waits', async () => {
    const queue: QueuedUpload[] = [{ path: 'a', bytes: 7, isUploading: false, failures: 0, changedAt: 5 }];
    const says = (stats: object, waiting = queue) =>
      changesOf(
        contextOf('', true, 'unknown', { queue: waiting, stats: { dirtyFiles: 1, ...stats } }),
        'files',
      );
    const first = await says({});
    assert.equal(await says({ cacheBytes: 5 }), first);
    const others = [
      await says({ uploadedBytes: 7 }),
      await says({ dirtyFiles: 0 }),
      await says({}, [{ ...queue[0]!, isUploading: true }]),
      await says({}, [{ ...queue[0]!, path: 'b' }]),
    ];
    assert.equal(new Set([first, ...others]).size, 5);
    assert.equal(await changesOf(contextOf('', false), 'files'), '');
  });

  it('are cut off where nobody reads on', async () => {
    const body =
      "return { folders: Array.from({ length: 600 }, (_, i) => 'd' + i), files: " +
      "Array.from({ length: 600 }, (_, i) => ({ name: 'f' + i, bytes: 0, modifiedMs: 0, " +
      'isCached: false })) };';
    const answer = await new FolderLists(contextOf(body)).open('files', '');
    assert.deepEqual([answer.folders.length, answer.files.length, answer.hidden], [600, 400, 200]);
  });

  it('are told of in the words of the remote when it refuses, and not at all while nothing is mounted', async () => {
    await assert.rejects(
      new FolderLists(contextOf("throw new Error('the remote said no');")).open('files', ''),
      /the remote said no/,
    );
    await assert.rejects(new FolderLists(contextOf('', false)).open('files', ''), /not mounted now/);
    await assert.rejects(new FolderLists(contextOf('')).open('other', ''), /not mounted now/);
  });

  it("are said not to be there in the reader's language while nothing is mounted", async () => {
    await loadLibraries();
    const tab = filesPanel(contextOf('', false));
    for (const [language, words] of [
      ['en', /is not mounted now/],
      ['zh', /没有挂载/],
    ] as const) {
      const view = createView({ language, host: 'keeper', share: 'files', tab });
      assert.match(toHtml(await tab.parts?.['folder']?.(view)), words);
    }
  });

  it('are looked for below the share alone', () => {
    assert.deepEqual(['/a//b/', './a', undefined, 'a..b'].map(folderOf), ['a/b', 'a', '', 'a..b']);
    assert.deepEqual(['..', 'a/../b', 'a\0b', 'x'.repeat(5_000)].map(folderOf), [
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('are read again for users of the share, a folder at a time, and the first failure is told', async () => {
    const asked: string[] = [];
    const refresher = {
      refresh: async (share: string, path: string) => {
        asked.push(`${share}/${path}`);
        return { ok: 2, failed: path === 'sub' ? [] : [{ path: 'x', reason: 'the remote said no' }] };
      },
    };
    let found: typeof refresher | undefined = refresher;
    const panel = filesPanel({ find: () => found, use: () => createClock() } as never);
    const act = async (path: string) =>
      panel.actions?.['refresh']?.(
        createView({ language: 'en', host: 'h', share: 'files', tab: panel, form: { path } }),
      );
    await loadLibraries();
    assert.deepEqual(await act('/sub/'), {
      ok: true,
      message: '2 folders were read again: users see what others have changed.',
    });
    assert.deepEqual(await act('other'), { ok: false, message: 'x: the remote said no' });
    assert.equal((await act('../..'))?.ok, false);
    found = undefined;
    assert.equal((await act('sub'))?.ok, false);
    assert.deepEqual(asked, ['files/sub', 'files/other']);
  });
});
