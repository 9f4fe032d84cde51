import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { BandwidthState } from '../../../../core/sdk/index.ts';
import { rateBytes } from '../../../../core/sdk/index.ts';
import { limitForm, limitPanel, writtenRate } from '../../../../plugins/dashboard/overview/limit.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const MIB = 1024 * 1024;
const limit = { up: 5 * MIB, down: 0 };
const stateOf = (now: typeof limit, effective = now): BandwidthState => ({
  limit: now,
  effective,
  shares: [],
});

describe('the bandwidth limit on the overview', () => {
  before(() => loadLibraries());
  const view = createView({ language: 'en', host: 'h' });

  it('writes a rate so that the daemon reads the same', () => {
    for (const bytes of [0, 1, 1023, 1024, 512 * 1024, 1.5 * MIB, 3 * MIB, 3 * MIB + 1, 2 * 1024 * MIB])
      assert.equal(rateBytes(writtenRate(bytes)), bytes, writtenRate(bytes));
    assert.deepEqual([writtenRate(1.5 * MIB), writtenRate(0)], ['1.5M', '0']);
  });

  it('begins with sliders at the limit in force, which say it with its unit', () => {
    const form = toHtml(limitForm('/x', stateOf(limit), view));
    assert.match(
      form,
      /name="up" value="5M"[^]*type="range"[^>]* value="5"[^>]*aria-valuetext="5\.0 MiB\/s"/,
    );
    assert.match(form, /name="down" value="0"[^]*max="13"[^>]* value="13"[^>]*aria-valuetext="No limit"/);
    const between = { up: 6.5 * MIB, down: 4 * 1024 * MIB };
    assert.match(
      toHtml(limitForm('/x', stateOf(between), view)),
      /value="6\.5M"[^]*value="5"[^>]*aria-valuetext="6\.5 MiB\/s"[^]*value="4G"[^]*value="12"/,
    );
  });

  it('says what it was adapted to', () => {
    const panel = toHtml(limitPanel(stateOf(limit, { up: MIB, down: 0 }), view));
    assert.match(panel, /data-up="5M" data-down="0"[^]*Adapted to[^]*1\.0 MiB\/s/);
  });
});
