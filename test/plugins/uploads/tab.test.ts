import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Clock, Mount, QueueEntry, Role } from 'mountkeeper';
import { createView } from '../../../plugins/dashboard/view.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
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
  before(() => loadLibraries());
  let flushed = 0;
  let pausedUntil: number | undefined;
  const sent: string[] = [];
  const uploads: Partial<ManagedUploads> = {
    sendNow: (path) => void sent.push(`layer ${path}`),
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
      entry({ path: 'waits' }),
      entry({ path: NAME, state: 'stuck', reason: 'permission denied <b>', tries: 3, nextTryAt: 60_000 }),
      entry({ path: 'goes', state: 'uploading' }),
    ],
    conflicts: () => [{ path: 'x', copy: 'x (mine)', what: 'changed', at: 0 }],
  };
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
    clock: () => clock,
    downloads: () => ({ address: (share, path) => (hasDownloads ? `/get/${share}/${path}` : undefined) }),
  });
  let hasDownloads = true;
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
      drawn.includes('<bdi>&lt;script>alert(1)&lt;/script> &quot;照片&quot; \u202E.raw</bdi>') &&
        drawn.includes('permission denied &lt;b>'),
      drawn,
    );
    assert.match(drawn, /next try.*1\.0 KiB of 2\.0 KiB.*Yours is at <bdi>x \(mine\)<\/bdi>/s);
    assert.match(toHtml(await panel.render(view('zh'))), /受阻/);
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

  it('pauses shares whose queue rclone keeps, and says in a sentence where that cannot be', async () => {
    assert.equal(await panel.render(view('en', 'plain')), null);
    assert.deepEqual(
      panel.buttons?.(view('en', 'plain')).map(({ action }) => action),
      ['send', 'pause'],
    );
    assert.equal(await act('pause', 'plain'), true);
    assert.match(toHtml(await panel.render(view('en', 'plain'))), /paused until[^]*do\/uploads\/go-on/);
    assert.equal(await act('go-on', 'plain'), true);
    assert.deepEqual(panel.buttons?.(view('en', 'hasty')), []);
    assert.match(
      toHtml(await panel.render(view('en', 'hasty'))),
      /cannot be paused: mount\.write_back is 1s/,
    );
    assert.equal(await act('pause', 'hasty'), false);
    assert.equal(pausedUntil, undefined);
  });

  it("lists rclone's own queue where there is no write layer, names as text", async () => {
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
    assert.equal(await act('retry', 'rows', { path: NAME }), true);
    assert.equal(await act('retry', 'files', { path: 'waits' }), true);
    assert.deepEqual(sent, [`plain ${NAME}`, 'layer waits']);
    await assert.rejects(act('retry', 'team', { path: 'a' }), /not mounted/);
    await assert.rejects(act('retry', 'plain', { path: 'a' }), /cannot be sent/);
  });

  it('sends what waits when asked', async () => {
    flushed = 0;
    assert.deepEqual([(await panel.actions?.['send']?.(view('en')))?.ok, flushed], [true, 1]);
    assert.equal(await act('send', 'team'), false);
  });
});
