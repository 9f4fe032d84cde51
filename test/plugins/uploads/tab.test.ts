import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { QueueEntry } from 'mountkeeper';
import { createView } from '../../../plugins/dashboard/view.ts';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../plugins/dashboard/pages/shell.ts';
import type { ShownUploads } from '../../../plugins/uploads/tab.ts';
import { uploadsPanel } from '../../../plugins/uploads/tab.ts';

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
  const uploads: ShownUploads = {
    get pausedUntil() {
      return pausedUntil;
    },
    pause: (until) => {
      pausedUntil = until === 0 ? undefined : until;
    },
    figures: undefined,
    look: () => Promise.reject(new Error('unused')),
    stop: () => Promise.resolve(),
    refreshed: () => undefined,
    holdMoves: () => Promise.resolve(() => undefined),
    settleMoves: () => Promise.resolve(),
    flush: () => {
      flushed += 1;
    },
    queue: () => [
      entry({ path: 'waits' }),
      entry({ path: NAME, state: 'stuck', reason: 'permission denied <b>', tries: 3, nextTryAt: 60_000 }),
      entry({ path: 'goes', state: 'uploading' }),
    ],
    conflicts: () => [{ path: 'x', copy: 'x (mine)', what: 'changed', at: 0 }],
  };
  const panel = uploadsPanel(
    () => new Map([['files', uploads]]),
    () => 1_000,
  );
  const view = (language: string, share = 'files') => createView({ language, host: 'h', share, tab: panel });

  it("names what is stuck first, with the remote's own words, as text", () => {
    const drawn = toHtml(panel.render(view('en')) as never);
    assert.ok(
      drawn.indexOf('alert(1)') < drawn.indexOf('goes') && drawn.indexOf('goes') < drawn.indexOf('waits'),
    );
    assert.ok(
      drawn.includes('<bdi>&lt;script>alert(1)&lt;/script> &quot;照片&quot; \u202E.raw</bdi>') &&
        drawn.includes('permission denied &lt;b>'),
      drawn,
    );
    assert.match(drawn, /next try.*1\.0 KiB of 2\.0 KiB.*Yours is at <bdi>x \(mine\)<\/bdi>/s);
    assert.match(toHtml(panel.render(view('zh')) as never), /受阻/);
  });

  it('is not there for shares whose queue rclone keeps', () => {
    assert.equal(panel.render(view('en', 'team')), null);
    assert.deepEqual(panel.buttons?.(view('en', 'team')), []);
  });

  it('pauses for an hour, says until when, and goes on at once', async () => {
    assert.deepEqual([(await panel.actions?.['pause']?.(view('en')))?.ok, pausedUntil], [true, 3_601_000]);
    assert.match(
      toHtml(panel.render(view('en')) as never),
      /paused until <time datetime="1970-01-01T01:00:01/,
    );
    assert.deepEqual([(await panel.actions?.['go-on']?.(view('en')))?.ok, pausedUntil], [true, undefined]);
    assert.doesNotMatch(toHtml(panel.render(view('en')) as never), /paused until/);
    assert.equal((await panel.actions?.['pause']?.(view('en', 'team')))?.ok, false);
  });

  it('sends what waits when asked', async () => {
    assert.deepEqual([(await panel.actions?.['send']?.(view('en')))?.ok, flushed], [true, 1]);
    assert.equal((await panel.actions?.['send']?.(view('en', 'team')))?.ok, false);
  });
});
