/** Pausing the uploads of all shares: who is paused, who cannot be and why, and what is said about it. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { LiveShare, PluginContext } from 'mountkeeper';
import { CATALOGUES, textOf } from '../../../../plugins/dashboard/languages.ts';
import {
  goOnAll,
  pauseAll,
  pauseButton,
  pausePanel,
} from '../../../../plugins/dashboard/overview/pause-all.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { sharesOf } from '../../../support/shares/fake-shares.ts';

const clock = createManualClock(0);

function share(name: string, traits: { obstacle?: string; failure?: string } = {}) {
  let until: number | undefined;
  const mount = {
    flush: async () => void (until = undefined),
    uploadPause: {
      get until() {
        return until;
      },
      get obstacle() {
        return traits.obstacle;
      },
      set: async (to: number) => {
        if (traits.failure !== undefined) throw new Error(traits.failure);
        until = to;
      },
    },
  };
  return { spec: { share: { name } }, mount } as unknown as LiveShare;
}

function contextWith(shares: readonly LiveShare[]): PluginContext {
  const services = { clock, shares: sharesOf(() => shares) };
  return { use: (name: keyof typeof services) => services[name] } as unknown as PluginContext;
}

describe('a pause of all uploads', () => {
  before(() => loadLibraries());
  const tab = { id: 'limit', title: 'Limit', texts: CATALOGUES, render: () => null };
  const view = createView({ language: 'en', host: 'h', tab });
  const panel = (shares: readonly LiveShare[]): string => toHtml(pausePanel(shares, view));

  it('pauses every share that is mounted, says until when, and ends', async () => {
    const shares = [share('a'), share('<b>'), { ...share('down'), mount: undefined }];
    assert.equal(panel(shares), '');
    assert.match(toHtml(pauseButton(shares, view)), /hx-confirm="Pause the uploads of all shares/);
    assert.equal((await pauseAll(contextWith(shares))).ok, true);
    assert.match(
      panel(shares),
      /Uploads are paused until <time datetime="1970-01-01T01:00:00[^]*do\/limit\/go-on/,
    );
    assert.equal((await goOnAll(contextWith(shares))).ok, true);
    assert.equal(panel(shares), '');
  });

  it('names the shares where only some are paused', async () => {
    const [a, b] = [share('<b>'), share('b')];
    await a.mount?.uploadPause?.set(1_000, clock.deadline(1));
    assert.match(panel([a, b]), /Uploads of <bdi>&lt;b><\/bdi> are paused until/);
  });

  it('says in one sentence why a share cannot be paused, and has no button where none can', async () => {
    const hindered = [share('hasty', { obstacle: 'mount.write_back is 1s' })];
    assert.match(panel(hindered), /Uploads of <bdi>hasty<\/bdi> cannot be paused: mount\.write_back is 1s\./);
    assert.equal(toHtml(pauseButton(hindered, view)), '');
    const { ok, message } = await pauseAll(contextWith(hindered));
    assert.deepEqual([ok, textOf(message, 'en')], [false, 'No uploads can be paused just now.']);
  });

  it('ends also where settings have changed so that it could not be paused any more', async () => {
    const traits: { obstacle?: string } = {};
    const hasty = share('hasty', traits);
    await pauseAll(contextWith([hasty]));
    traits.obstacle = 'mount.write_back is 1s';
    assert.match(panel([hasty]), /go-on/);
    await goOnAll(contextWith([hasty]));
    assert.doesNotMatch(panel([hasty]), /go-on/);
  });

  it('names the share whose pause failed', async () => {
    const shares = [share('a'), share('b', { failure: 'rclone does not answer' })];
    await assert.rejects(pauseAll(contextWith(shares)), /^Error: b: rclone does not answer$/);
  });
});
