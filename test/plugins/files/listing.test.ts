/** What the panel of a share's files asks for, and what it makes of the answers. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createClock } from '../../../core/platform/clock.ts';
import { createProcesses } from '../../../core/platform/processes/processes.ts';
import { pino } from 'pino';
import type { LiveShare, PluginContext, QueuedUpload, UnsavedFile } from 'mountkeeper';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../plugins/dashboard/view.ts';
import { FolderLists, folderOf } from '../../../plugins/files/listing.ts';
import { filesPanel } from '../../../plugins/files/panel.ts';
import { Waiting } from '../../../plugins/files/waiting.ts';
import { until } from '../../support/platform/wait.ts';
import { sharesOf } from '../../support/shares/fake-shares.ts';

const folder = mkdtempSync(join(tmpdir(), 'mk-files-'));
const processes = createProcesses({ stateDir: folder, clock: createClock(), log: pino({ level: 'silent' }) });

interface Share {
  readonly queue: QueuedUpload[];
  stats: object;
  takenAtMs: number;
  /** On the monotonic clock. */
  now: number;
  /** Where it leads. */
  remote: string;
  queueReads: number;
  /** Services of other plugins. */
  readonly found: Readonly<Record<string, unknown>>;
}

function share(given: Partial<Share> = {}): Share {
  return { queue: [], stats: {}, takenAtMs: 0, now: 0, remote: 'nas:a', queueReads: 0, found: {}, ...given };
}

/** A view of a cache as a mounter offers it. */
function contextOf(
  body: string,
  isMounted = true,
  unsaved: readonly UnsavedFile[] | 'unknown' = [],
  files = share(),
): PluginContext {
  const module = join(folder, `view-${Math.random()}.mjs`);
  writeFileSync(
    module,
    `export const openCacheView = (given) => ({ list: async (folder) => { ${body} }, ...UNSAVED });
     const UNSAVED = ${unsaved === 'unknown' ? '{}' : `{ unsaved: async () => (${JSON.stringify(unsaved)}) }`};`,
  );
  const mount = {
    cacheAccess: () => ({ module, parameters: { word: 'secret word', fs: files.remote } }),
    uploadQueue: async () => {
      files.queueReads += 1;
      return [...files.queue];
    },
  };
  const spec = { share: { name: 'files' } };
  const live = () =>
    ({
      spec,
      mount: isMounted ? mount : undefined,
      figures: { stats: files.stats, takenAtMs: files.takenAtMs },
    }) as unknown as LiveShare;
  const clock = { ...createClock(), monotonic: () => files.now };
  const services: Record<string, unknown> = {
    shares: sharesOf(() => [live()]),
    processes,
    clock,
    plugins: { list: () => [{ name: 'warmup', state: 'active' }] },
    config: { current: { config: { shares: [{ name: 'files' }] } } },
  };
  return {
    use: (name: string) => services[name],
    find: (name: string) => files.found[name],
    send: async () => undefined,
    signal: new AbortController().signal,
  } as unknown as PluginContext;
}

const listsOf = (ctx: PluginContext): FolderLists => new FolderLists(ctx, new Waiting(ctx));

function queued(path: string, traits: Partial<QueuedUpload> = {}): QueuedUpload {
  return { path, bytes: 7, isUploading: false, failures: 0, changedAt: 5, ...traits };
}

/** A remote whose names are in a file, and how often it was asked; it answers when a file of that name says so. */
class Remote {
  readonly #names = join(folder, `names-${Math.random()}`);
  readonly #asked = `${this.#names}-asked`;
  readonly #held = `${this.#names}-held`;
  readonly body = `const { appendFileSync, existsSync, readFileSync } = await import('node:fs');
    const names = JSON.parse(readFileSync(${JSON.stringify(this.#names)}, 'utf8'));
    appendFileSync(${JSON.stringify(this.#asked)}, '.');
    while (existsSync(${JSON.stringify(this.#held)})) await new Promise((done) => setTimeout(done, 10));
    return { folders: [], files: names.map((name) => ({ name, bytes: 1, modifiedMs: 2, isCached: false })) };`;

  constructor() {
    writeFileSync(this.#asked, '');
    this.has();
  }

  get asked(): number {
    return readFileSync(this.#asked).length;
  }

  has(...names: readonly string[]): void {
    writeFileSync(this.#names, JSON.stringify(names));
  }

  hold(): void {
    writeFileSync(this.#held, '');
  }

  answer(): void {
    rmSync(this.#held);
  }
}

describe('the files of a share', () => {
  after(() => rmSync(folder, { recursive: true }));

  it('are listed by a process beside the daemon, in order, folders first', async () => {
    const body =
      "return { folders: ['b', 'a'], files: [{ name: 'x10', bytes: 1, modifiedMs: 2, " +
      "isCached: true }, { name: 'x9', bytes: given.word.length, modifiedMs: 0, " +
      "isCached: folder === 'sub' }] };";
    const answer = await listsOf(contextOf(body)).open('files', 'sub');
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
    const { files } = await listsOf(contextOf(body, true, [unsaved])).open('files', '');
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
    const queue = [
      queued('sub/old', { isUploading: true }),
      queued('sub/new', { failures: 3 }),
      queued('sub/next'),
      queued('sub/deeper/x'),
      queued('other'),
    ];
    const { files } = await listsOf(contextOf(body, true, 'unknown', share({ queue }))).open('files', 'sub');
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
      void queue.splice(0, queue.length, ...paths.map((path) => queued(path)));
    const files = share({ queue });
    const lists = listsOf(contextOf(body, true, 'unknown', files));
    const again = async () => {
      files.takenAtMs += 1;
      const { files: shown, failed } = await lists.again('files', '');
      return [shown.map(({ name, bytes, unsaved }) => [name, bytes, unsaved]), failed];
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

  it('are asked for once more where something has arrived while the question of another reader ran', async () => {
    const remote = new Remote();
    const files = share({ queue: [queued('x')] });
    const lists = listsOf(contextOf(remote.body, true, 'unknown', files));
    const names = ({ files: shown }: Awaited<ReturnType<FolderLists['open']>>) =>
      shown.map(({ name }) => name);
    remote.hold();
    const first = lists.open('files', '');
    await until('it is asked', async () => remote.asked === 1, { timeoutMs: 10_000 });
    remote.has('x');
    files.queue.pop();
    const others = [lists.open('files', ''), lists.open('files', '')];
    // By now both have seen the queue without it.
    await until('they look', async () => files.queueReads === 3, { timeoutMs: 10_000 });
    await new Promise(setImmediate);
    remote.answer();
    assert.deepEqual(names(await first), ['x'], 'as it waited then');
    assert.deepEqual((await Promise.all(others)).map(names), [['x'], ['x']]);
    assert.equal(remote.asked, 2, 'once for both');
  });

  it('ask the remote not for what other folders send, and after 10 seconds for what no queue tells', async () => {
    const remote = new Remote();
    const files = share({ stats: { dirtyFiles: 20 } });
    const ctx = contextOf(remote.body, true, 'unknown', files);
    const [lists, waiting] = [listsOf(ctx), new Waiting(ctx)];
    const cycle = async (dirtyFiles: number): Promise<string> => {
      files.now += 2_000;
      files.takenAtMs += 1;
      files.stats = { dirtyFiles };
      await lists.again('files', 'idle');
      return waiting.sign(ctx.use('shares').get('files'));
    };
    remote.has('removed');
    await lists.open('files', 'idle');
    for (const dirtyFiles of [19, 18, 17, 16]) await cycle(dirtyFiles);
    assert.equal(remote.asked, 1, 'others send');
    const last = await cycle(0);
    remote.has();
    files.now += 10_000;
    assert.equal(await waiting.sign(ctx.use('shares').get('files')), last, 'nothing is new');
    files.now += 1;
    assert.notEqual(await waiting.sign(ctx.use('shares').get('files')), last, 'once more for what was left');
    assert.deepEqual((await lists.again('files', 'idle')).files, []);
    const signs = new Set<string>();
    for (let count = 0; count < 10; count += 1) signs.add(await cycle(0));
    assert.equal(signs.size, 1, 'and then no more');
  });

  it('are asked for again when the cache has changed or a folder was read anew, not too often', async () => {
    const remote = new Remote();
    const directoryRefresher = { refresh: async () => ({ ok: 1, failed: [] }) };
    const files = share({ stats: { cacheBytes: 1 }, found: { directoryRefresher } });
    await loadLibraries();
    const panel = filesPanel(contextOf(remote.body, true, 'unknown', files));
    const view = (form = {}) =>
      createView({ language: 'en', host: 'h', share: 'files', tab: panel, form, query: { path: 'sub' } });
    let signs = new Set<string>();
    /** As an open page: it asks for the list where the sign is another one. */
    const cycle = async (ms: number, stats: object): Promise<number> => {
      const before = remote.asked;
      files.now += ms;
      files.takenAtMs += 1;
      files.stats = stats;
      const sign = toHtml(await panel.render(view()));
      if (!signs.has(sign)) await panel.parts?.['list']?.(view());
      signs = new Set([sign]);
      return remote.asked - before;
    };
    await panel.parts?.['folder']?.(view());
    const asked = [await cycle(0, { cacheBytes: 1 }), await cycle(5_000, { cacheBytes: 2 })];
    assert.deepEqual(asked, [0, 1], 'somebody has read a file');
    assert.equal(await cycle(2_000, { cacheBytes: 3 }), 0, 'a moment later');
    assert.equal(await cycle(2_000, { cacheBytes: 3 }), 0);
    assert.equal(await cycle(1_000, { cacheBytes: 3 }), 1, 'once in five seconds');
    const act = async (action: 'refresh' | 'warm') =>
      assert.equal((await panel.actions?.[action]?.(view({ path: 'sub' })))?.ok, true);
    await act('refresh');
    assert.equal(await cycle(50, { cacheBytes: 3 }), 1, 'at once');
    assert.equal(await cycle(9_000, { cacheBytes: 3 }), 0);
    await act('warm');
    const looks: number[] = [];
    for (let count = 0; count < 20; count += 1) looks.push(await cycle(2_000, { cacheBytes: 3 }));
    const sum = (all: readonly number[]) => all.reduce((one, other) => one + other, 0);
    assert.ok(sum(looks.slice(0, 3)) >= 2, 'for what comes into the cache');
    assert.ok(sum(looks) <= 8 && sum(looks.slice(16)) === 0, looks.join());
  });

  it('are what another remote has once the share leads there', async () => {
    const remote = new Remote();
    const files = share();
    const lists = listsOf(contextOf(remote.body, true, 'unknown', files));
    remote.has('of the former NAS');
    await lists.open('files', '');
    remote.has('of this one');
    files.remote = 'nas:b';
    assert.deepEqual(
      (await lists.again('files', '')).files.map(({ name }) => name),
      ['of this one'],
    );
  });

  it('are asked for again without a queue when more waits, and when less does where some is theirs', async () => {
    const remote = new Remote();
    const files = share({ stats: { dirtyFiles: 1 } });
    const asks = async (lists: FolderLists, dirtyFiles: number): Promise<boolean> => {
      const before = remote.asked;
      files.stats = { dirtyFiles };
      await lists.again('files', '');
      return remote.asked > before;
    };
    const without = listsOf(contextOf(remote.body, true, [], files));
    await without.open('files', '');
    assert.deepEqual(
      [await asks(without, 1), await asks(without, 0), await asks(without, 2), await asks(without, 2)],
      [false, false, true, false],
    );
    const own: UnsavedFile = { name: 'a', bytes: 1, modifiedMs: 1, state: 'waiting' };
    const having = listsOf(contextOf(remote.body, true, [own], files));
    await having.open('files', '');
    assert.deepEqual([await asks(having, 2), await asks(having, 1)], [false, true]);
  });

  it('are said to have changed by the queue, and by the figures while nothing waits', async () => {
    const queue = [queued('a')];
    const says = (stats: object, waiting = queue) => {
      const ctx = contextOf(
        '',
        true,
        'unknown',
        share({ queue: waiting, stats: { dirtyFiles: 1, ...stats } }),
      );
      return new Waiting(ctx).sign(ctx.use('shares').get('files'));
    };
    const first = await says({});
    assert.equal(await says({ speed: 5 }), first);
    const others = [
      await says({ uploadedBytes: 7 }),
      await says({ dirtyFiles: 0 }),
      await says({}, [queued('a', { isUploading: true })]),
      await says({}, [queued('b')]),
    ];
    assert.equal(new Set([first, ...others]).size, 5);
    const unmounted = contextOf('', false);
    assert.equal(await new Waiting(unmounted).sign(unmounted.use('shares').get('files')), '');
  });

  it('have one look at the queue in a cycle, whoever looks, and another when somebody opens a folder', async () => {
    const files = share({ queue: [queued('a')], stats: { dirtyFiles: 1 } });
    const ctx = contextOf('return { folders: [], files: [] };', true, 'unknown', files);
    const waiting = new Waiting(ctx);
    const lists = new FolderLists(ctx, waiting);
    const sign = () => waiting.sign(ctx.use('shares').get('files'));
    const open = async () => (await lists.open('files', '')).files.map(({ name }) => name);
    await open();
    files.queueReads = 0;
    files.takenAtMs += 1;
    await Promise.all([sign(), sign(), lists.again('files', ''), lists.again('files', 'sub')]);
    await lists.again('files', '');
    assert.equal(files.queueReads, 1);
    files.queue.push(queued('b'));
    assert.deepEqual(await open(), ['a', 'b'], 'what was written a moment ago');
    assert.equal(files.queueReads, 2);
    const before = await sign();
    files.takenAtMs += 1;
    files.queue.pop();
    assert.notEqual(await sign(), before);
    assert.equal(files.queueReads, 3);
  });

  it('are cut off where nobody reads on', async () => {
    const body =
      "return { folders: Array.from({ length: 600 }, (_, i) => 'd' + i), files: " +
      "Array.from({ length: 600 }, (_, i) => ({ name: 'f' + i, bytes: 0, modifiedMs: 0, " +
      'isCached: false })) };';
    const answer = await listsOf(contextOf(body)).open('files', '');
    assert.deepEqual([answer.folders.length, answer.files.length, answer.hidden], [600, 400, 200]);
  });

  it('are told of in the words of the remote when it refuses, and not at all while nothing is mounted', async () => {
    await assert.rejects(
      listsOf(contextOf("throw new Error('the remote said no');")).open('files', ''),
      /the remote said no/,
    );
    await assert.rejects(listsOf(contextOf('', false)).open('files', ''), /not mounted now/);
    await assert.rejects(listsOf(contextOf('')).open('other', ''), /not mounted now/);
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

  it('are said to be gone with a share that is no longer configured, and nothing is looked for', async () => {
    await loadLibraries();
    const ctx = contextOf("throw new Error('the remote was asked');");
    const tab = filesPanel(ctx);
    const view = (language: string) => createView({ language, host: 'keeper', share: 'files', tab });
    const before = tab.controlsVersion?.();
    assert.match(toHtml(tab.controls?.(view('en'))), /Looking/);
    assert.equal(tab.controlsVersion?.(), before);
    (ctx.use('config').current.config.shares as unknown[]).length = 0;
    assert.notEqual(tab.controlsVersion?.(), before, 'open pages draw it anew');
    const said = '<p class="empty">This share is no longer configured.</p>';
    assert.equal(toHtml(tab.controls?.(view('en'))), said);
    for (const part of Object.values(tab.parts ?? {})) assert.equal(toHtml(await part(view('en'))), said);
    assert.match(toHtml(tab.controls?.(view('zh'))), /此共享已不在配置中。/);
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
    const services: Record<string, unknown> = { clock: createClock(), shares: sharesOf(() => []) };
    const panel = filesPanel({ find: () => found, use: (name: string) => services[name] } as never);
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
