import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { html } from 'mountkeeper';
import type { Clock, Conflict, Mount, QueueEntry, Role } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { createView } from '../../../plugins/dashboard/view.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import { ReceiptJobs } from '../../../plugins/uploads/proof/receipt-jobs.ts';
import { VerifyJobs } from '../../../plugins/uploads/proof/verify-jobs.ts';
import { reasonText } from '../../../plugins/uploads/page/reason.ts';
import { uploadsPanel } from '../../../plugins/uploads/tab.ts';
import type { ManagedUploads } from '../../../plugins/uploads/transfer/managed.ts';

const NAME = '<script>alert(1)</script> "照片" \u202E.raw';

function entry(traits: Partial<QueueEntry>): QueueEntry {
  return {
    path: 'a',
    action: 'upload',
    state: 'waiting',
    bytes: 2_048,
    sentBytes: 1_024,
    since: 0,
    reason: '',
    tries: 0,
    ...traits,
  };
}

describe('the uploads of a share on the dashboard', () => {
  const clockNow = createClock();
  const realClock = (): Clock => clockNow;
  before(() => loadLibraries());
  let flushed = 0;
  let pausedUntil: number | undefined;
  const sent: string[] = [];
  const uploads: Partial<ManagedUploads> = {
    sendNow: async (path) => void sent.push(`layer ${path}`),
    pausedUntil: undefined,
    pause: () => assert.fail('the mount is asked'),
    figures: undefined,
    look: () => Promise.reject(new Error('unused')),
    stop: () => Promise.resolve(),
    refreshed: () => undefined,
    holdMoves: () => Promise.resolve(() => undefined),
    settleMoves: () => Promise.resolve(),
    flush: () => assert.fail('the mount is asked'),
    queue: () => [
      entry({ path: 'waits', reason: 'It waits for its turn.' }),
      entry({
        path: NAME,
        state: 'stuck',
        reason: 'permission denied <b>',
        tries: 3,
        nextTryAt: 60_000,
        version: 'v2',
      }),
      entry({ path: 'goes', state: 'uploading', version: 'v3' }),
    ],
    conflicts: () => conflicts,
    resolve: async ({ path, copy }, keep) => void sent.push(`${keep} ${path} ${copy}`),
    discard: async ({ path, version }) => {
      if (version !== 'v2') throw new Error(`${path} is a folder: only one file at a time can be discarded.`);
      sent.push(`discard ${path}`);
      return { path, bytes: 1, keptAt: '/kept/here', shows: 'file' };
    },
    verify: async (path, { onProgress }) => {
      onProgress(1, 2);
      if (path === 'slow') await new Promise(() => undefined);
      const files = [
        { path: 'same', result: 'hash', bytes: 1, modifiedMs: 0 },
        { path: NAME, result: 'differs', bytes: 1, modifiedMs: 0 },
        ...(path === 'looks' ? [{ path, result: 'size', bytes: 1, modifiedMs: 0 } as const] : []),
      ] as const;
      return { files: path === 'none' ? [] : files, waiting: path === 'none' ? 2 : 0 };
    },
    receipt: async () => ({ root: '', proved: [], unproved: [{ path: NAME, reason: 'it waits' }] }),
  };
  const versions = { theirs: { bytes: 1, modifiedMs: 0 }, mine: { bytes: 2, modifiedMs: 0 } };
  const conflicts: readonly Conflict[] = [
    { path: 'x', copy: 'x (mine)', what: 'changed', at: 0, versions },
    { path: NAME, copy: NAME, what: 'deleted', at: 0, versions },
    { path: 'y', copy: 'y (mine)', what: 'deleted', at: 0 },
  ];
  const mountWith = (obstacle?: string): Mount =>
    ({
      flush: async () => {
        flushed += 1;
        pausedUntil = undefined;
      },
      uploadPause: {
        get until() {
          return pausedUntil;
        },
        obstacle,
        set: async (until: number) => void (pausedUntil = until),
      },
    }) as Partial<Mount> as Mount;
  const mounts = new Map([
    ['files', mountWith()],
    ['plain', mountWith()],
    ['hasty', mountWith('mount.write_back is 1s')],
  ]);
  const clock = { now: () => 1_000, deadline: () => AbortSignal.timeout(1_000) } as Partial<Clock> as Clock;
  const panel = uploadsPanel({
    shares: () => new Map([['files', uploads as ManagedUploads]]),
    mountOf: (share) => mounts.get(share),
    isReadOnly: (share) => readOnly.has(share),
    clock: () => clock,
    downloads: () => ({ address: (share, path) => (hasDownloads ? `/get/${share}/${path}` : undefined) }),
    proofs: {
      verify: new VerifyJobs(realClock),
      receipt: new ReceiptJobs({ clock: realClock, version: '1' }),
    },
  });
  let hasDownloads = true;
  const readOnly = new Set<string>();
  const act = async (action: string, share: string, form = {}): Promise<boolean | undefined> =>
    (await panel.actions?.[action]?.(view('en', share, form)))?.ok;
  const view = (language: string, share = 'files', form = {}) =>
    createView({ language, host: 'h', share, tab: panel, form });

  it("names what is stuck first, with the remote's own words, as text", async () => {
    const drawn = toHtml(await panel.render(view('en')));
    assert.ok(
      drawn.indexOf('alert(1)') < drawn.indexOf('goes') && drawn.indexOf('goes') < drawn.indexOf('waits'),
    );
    assert.ok(
      drawn.includes('<bdi>&lt;script>alert(1)&lt;/script> &quot;照片&quot; ⟨U+202E⟩.raw</bdi>') &&
        drawn.includes('permission denied &lt;b>'),
      drawn,
    );
    assert.match(drawn, /next try.*1\.0 KiB of 2\.0 KiB.*Yours is at <bdi>x \(mine\)<\/bdi>/s);
    assert.match(toHtml(await panel.render(view('zh'))), /受阻.*<bdi>正在排队。<\/bdi>/s);
  });

  it("says until when uploads are paused in the reader's own form, and in no other language's", async () => {
    const at = Date.UTC(2026, 10, 27, 8, 55, 19, 926);
    const reason = `Uploads are paused until ${new Date(at).toISOString()}.`;
    for (const [language, before, after] of [
      ['en', 'Uploads are paused until ', '.'],
      ['zh', '上传暂停至 ', '。'],
    ] as const) {
      const drawn = toHtml(html`<p>${reasonText(reason, view(language))}</p>`);
      const time = toHtml(view(language).time(at));
      assert.equal(drawn, `<p>${before}${time}${after}</p>`);
    }
    assert.equal(toHtml(reasonText('no <b> here', view('en'))), 'no &lt;b> here');
  });

  it('is not there for shares that are not mounted', async () => {
    assert.equal(await panel.render(view('en', 'team')), null);
    assert.deepEqual(panel.buttons?.(view('en', 'team')), []);
  });

  it('pauses for an hour, says until when, and goes on at once', async () => {
    assert.deepEqual([(await panel.actions?.['pause']?.(view('en')))?.ok, pausedUntil], [true, 3_601_000]);
    assert.match(toHtml(await panel.render(view('en'))), /paused until <time datetime="1970-01-01T01:00:01/);
    assert.deepEqual([(await panel.actions?.['go-on']?.(view('en')))?.ok, pausedUntil], [true, undefined]);
    assert.doesNotMatch(toHtml(await panel.render(view('en'))), /paused until/);
    assert.equal((await panel.actions?.['pause']?.(view('en', 'team')))?.ok, false);
  });

  it('has nothing to press for a share to which nobody writes, unless something waits from before', () => {
    readOnly.add('plain').add('files');
    assert.deepEqual(panel.buttons?.(view('en', 'plain')), []);
    assert.equal(panel.buttons?.(view('en', 'files')).length, 2);
    readOnly.clear();
  });

  it('pauses shares whose queue rclone keeps, and says in a sentence where that cannot be', async () => {
    assert.equal(await panel.render(view('en', 'plain')), null);
    assert.deepEqual(
      panel.buttons?.(view('en', 'plain')).map(({ action }) => action),
      ['send', 'pause'],
    );
    assert.equal(await act('pause', 'plain'), true);
    assert.match(toHtml(await panel.render(view('en', 'plain'))), /paused until/);
    // On the overview as on the share's own page, and no pause of what is paused.
    assert.deepEqual(
      panel.buttons?.(view('en', 'plain')).map(({ action }) => action),
      ['go-on'],
    );
    assert.equal(await act('go-on', 'plain'), true);
    assert.deepEqual(panel.buttons?.(view('en', 'hasty')), []);
    assert.match(
      toHtml(await panel.render(view('en', 'hasty'))),
      /cannot be paused: mount\.write_back is 1s/,
    );
    assert.equal(await act('pause', 'hasty'), false);
    assert.equal(pausedUntil, undefined);
  });

  it('pauses for other times, also instead of a pause that is under way', async () => {
    const form = toHtml(panel.controls?.(view('en')));
    assert.match(form, /hx-confirm="[^"]+"[^]*name=":question" value="[^"]+"/);
    assert.match(form, /value="7200">2 hours<[^]*value="86400">1 day<[^]*value="604800">7 days</);
    assert.equal(await act('pause', 'files'), true);
    assert.equal(pausedUntil, 1_000 + 3_600_000);
    assert.equal(await act('pause', 'files', { seconds: '604800' }), true);
    assert.equal(pausedUntil, 1_000 + 7 * 86_400_000);
    for (const seconds of ['0', '604801', '-1', '1e9', ''])
      assert.equal(await act('pause', 'files', { seconds }), false, seconds);
    assert.equal(pausedUntil, 1_000 + 7 * 86_400_000);
    assert.equal(await act('go-on', 'files'), true);
  });

  it('lists the queue of a mount without the uploader, names as text', async () => {
    const queue = [
      { path: 'goes.raw', bytes: 2_048, isUploading: true, failures: 0 },
      { path: NAME, bytes: 10, isUploading: false, failures: 2, goesAt: 60_000 },
      { path: 'waits.raw', bytes: 10, isUploading: false, failures: 0 },
    ];
    mounts.set('queue', { ...mountWith(), uploadQueue: async () => queue } as Mount);
    const drawn = toHtml(await panel.render(view('en', 'queue')));
    assert.match(drawn, /goes\.raw[^]*Uploading[^]*2\.0 KiB[^]*Stuck[^]*next try[^]*waits\.raw[^]*Waiting/);
    assert.ok(drawn.includes('&lt;script>alert(1)') && !drawn.includes('<script>'));
  });

  it('sends one file and offers a copy of it, in its row; of one that goes up already, a copy alone', async () => {
    const queue = [
      { path: 'goes.raw', bytes: 1, isUploading: true, failures: 0 },
      { path: NAME, bytes: 1, isUploading: false, failures: 2 },
    ];
    const sendNow = async (path: string): Promise<void> => void sent.push(`plain ${path}`);
    mounts.set('rows', { ...mountWith(), uploadQueue: async () => queue, sendNow } as Mount);
    const rows = async (share: string): Promise<readonly string[]> =>
      toHtml(await panel.render(view('en', share)))
        .split('<tr')
        .slice(2);
    const [goes = '', failed = ''] = await rows('rows');
    assert.match(failed, /id="queue-\w{16}"[^]*Retry now<span class="unseen"> <bdi>&lt;script>alert/);
    assert.doesNotMatch(goes, /<button/);
    assert.match(goes, /href="\/get\/rows\/goes\.raw" download aria-label="Download a copy goes\.raw"/);
    assert.match((await rows('files')).join(''), /Retry now[^]*Send now/);
    const drawnFor = async (role: Role): Promise<readonly boolean[]> => {
      const drawn = toHtml(
        await panel.render(createView({ language: 'en', host: 'h', share: 'rows', tab: panel, role })),
      );
      return [drawn.includes('do/uploads/retry'), drawn.includes('href=')];
    };
    assert.deepEqual(
      [await drawnFor('viewer'), await drawnFor('operator'), await drawnFor('admin')],
      [
        [false, false],
        [true, false],
        [true, true],
      ],
      'who may send one file again, and who may download it',
    );
    hasDownloads = false;
    assert.doesNotMatch((await rows('rows')).join(''), /href/);
    const outcome = await panel.actions?.['retry']?.(view('en', 'rows', { path: NAME }));
    assert.deepEqual([outcome?.ok, outcome?.endsWithButton], [true, true], 'untrue once it has gone up');
    assert.equal(await act('retry', 'files', { path: 'waits' }), true);
    assert.deepEqual(sent, [`plain ${NAME}`, 'layer waits']);
    await assert.rejects(act('retry', 'team', { path: 'a' }), /not mounted/);
    await assert.rejects(act('retry', 'plain', { path: 'a' }), /cannot be sent/);
  });

  it('discards one file, asks before and names it, and says where it is kept or why not', async () => {
    const rowsFor = async (role: Role, share = 'files'): Promise<readonly string[]> =>
      toHtml(await panel.render(createView({ language: 'en', host: 'h', share, tab: panel, role })))
        .split('<tr')
        .slice(2)
        .filter((row) => row.includes('do/uploads/discard'));
    const [stuck = '', ...others] = await rowsFor('admin');
    assert.deepEqual(others, [], 'neither what goes up nor what has no content here');
    assert.match(stuck, /hx-confirm="Discard &lt;script>alert[^"]*2\.0 KiB[^"]*given up[^"]*7 days/);
    assert.match(stuck, /name="version" value="v2"/);
    assert.deepEqual(await rowsFor('operator'), []);
    sent.length = 0;
    const discard = async (language: string, path: string, version: string) => {
      const outcome = await panel.actions!['discard']!(view(language, 'files', { path, version }));
      return { ...outcome, message: toHtml(outcome.message as string) };
    };
    const { ok, about, message } = await discard('en', NAME, 'v2');
    assert.deepEqual([ok, about, sent], [true, { path: NAME }, [`discard ${NAME}`]]);
    assert.match(message, /NAS's version shows again[^]*7 days: \/kept\/here/);
    const refused = await discard('zh', 'd', 'v');
    assert.equal(refused.ok, false);
    assert.match(refused.message, /^d 是文件夹/);
    assert.equal(await act('discard', 'plain', { path: 'a', version: 'v' }), false);
  });

  it('sends what waits when asked', async () => {
    flushed = 0;
    assert.deepEqual([(await panel.actions?.['send']?.(view('en')))?.ok, flushed], [true, 1]);
    assert.equal(await act('send', 'team'), false);
  });

  it('ends conflicts as chosen, asks before a version goes, and offers no choice where there is one file', async () => {
    const drawn = toHtml(await panel.render(view('en')));
    const [two = '', one = '', unknown = ''] = drawn.split('<li').slice(1);
    const choices = (row: string): readonly string[] =>
      [...row.matchAll(/name="keep" value="(\w+)"/g)].map(([, keep = '']) => keep);
    assert.deepEqual([two, one, unknown].map(choices), [['mine', 'theirs', 'both'], ['both'], ['both']]);
    assert.equal(two.match(/hx-confirm="[^"]*deleted on the NAS/g)?.length, 2);
    assert.match(two, /hx-confirm="[^"]*x \(mine\)/);
    assert.ok(!drawn.includes('<script>'));
    const asOperator = createView({
      language: 'en',
      host: 'h',
      share: 'files',
      tab: panel,
      role: 'operator',
    });
    assert.deepEqual(choices(toHtml(await panel.render(asOperator))), [], 'what takes a version away');
    sent.length = 0;
    assert.equal(await act('keep', 'files', { path: 'x', copy: 'x (mine)', keep: 'theirs' }), true);
    assert.equal(await act('keep', 'files', { path: 'x', copy: 'x (mine)', keep: 'all' }), false);
    assert.equal(await act('keep', 'plain', { path: 'x', copy: 'x', keep: 'both' }), false);
    assert.deepEqual(sent, ['theirs x x (mine)']);
  });

  it('compares, and makes a receipt to download', async () => {
    assert.equal(panel.controls?.(view('en', 'plain')), null);
    assert.match(toHtml(panel.controls?.(view('en'))), /name="what" value="verify"[^]*value="receipt"/);
    const begin = async (what: string, path = ''): Promise<string> =>
      toHtml((await panel.actions?.['prove']?.(view('en', 'files', { what, path })))?.content);
    const asked = (shown: string): Promise<string> => {
      const [, search = ''] = /hx-get="[^"]*\?([^"]*)"/.exec(shown) ?? [];
      const query = Object.fromEntries(new URLSearchParams(search.replaceAll('&amp;', '&')));
      return Promise.resolve(
        panel.parts?.['proof']?.(
          createView({ language: 'en', host: 'h', share: 'files', tab: panel, query }),
        ),
      ).then(toHtml);
    };
    const compared = await asked(await begin('verify'));
    assert.match(compared, /1 of 2 files differs[^]*&lt;script>alert[^]*another version/);
    assert.doesNotMatch(compared, /not compared/);
    assert.match(await asked(await begin('verify', 'looks')), /content of 1 of them was not compared/);
    assert.match(
      await asked(await begin('verify', 'none')),
      /data-tone="bad">There is nothing to compare[^]*2 changes wait to go up/,
    );
    const received = await asked(await begin('receipt', '/sub/'));
    assert.match(
      received,
      /1 file is not proved[^]*it waits[^]*href="\/api\/queue\/files\/receipt\/[\w-]+\/hash-list"/,
    );
    const asViewer = createView({ language: 'en', host: 'h', share: 'files', tab: panel, role: 'viewer' });
    assert.equal(toHtml(panel.controls?.(asViewer)), '');
    assert.equal(await panel.parts?.['proof']?.(asViewer), null);
    const slow = await begin('verify', 'slow');
    assert.match(await asked(slow), /1 of 2 files…/, 'it asks again');
    assert.match(await asked(slow), /hx-trigger="load delay:1s, every 5s"/);
    assert.match(await asked('hx-get="/x?kind=verify&id=none"'), /not kept any more/);
    assert.equal(await act('prove', 'files', { path: '../..' }), false);
    assert.equal(await act('prove', 'plain'), false);
  });
});
