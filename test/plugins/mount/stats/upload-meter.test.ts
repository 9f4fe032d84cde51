import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createUploadMeter } from '../../../../plugins/mount/stats/upload-meter.ts';

const up = (name: string, bytes: number) => ({ name, bytes, srcFs: ':local:/cache', dstFs: 'nas:' });
const down = (name: string, bytes: number) => ({ name, bytes, srcFs: 'nas:' });

describe('bytes that have gone up', () => {
  it('are all that moved while nothing comes down, files that came and went between two looks included', () => {
    const meter = createUploadMeter();
    assert.equal(meter({ bytes: 100, transferring: [up('a', 60)] }, 1), 100);
    assert.equal(meter({ bytes: 500, transferring: [up('b', 10)] }, 1), 500);
    assert.equal(meter({ bytes: 500, transferring: [] }, 0), 500);
  });

  it('leave out what comes down meanwhile', () => {
    const meter = createUploadMeter();
    meter({ bytes: 100, transferring: [up('a', 100)] }, 1);
    assert.equal(meter({ bytes: 400, transferring: [up('a', 150), down('r', 250)] }, 1), 150);
    assert.equal(meter({ bytes: 900, transferring: [up('a', 250), down('r', 350), down('r', 300)] }, 1), 250);
    assert.equal(meter({ bytes: 1_000, transferring: [up('a', 350)] }, 1), 350);
  });

  it('are unknown while a transfer may be one or the other, and known again afterwards', () => {
    const meter = createUploadMeter();
    assert.equal(meter({ bytes: 100, transferring: [{ name: 'a', bytes: 100 }] }, 1), 100);
    assert.equal(
      meter(
        {
          bytes: 300,
          transferring: [
            { name: 'a', bytes: 200 },
            { name: 'r', bytes: 100 },
          ],
        },
        1,
      ),
      undefined,
    );
    assert.equal(meter({ bytes: 350, transferring: [{ name: 'a', bytes: 250 }] }, 1), 150);
  });

  it('are those of the uploads themselves while downloads come and go, and unknown while both do', () => {
    const meter = createUploadMeter();
    meter({ bytes: 100, transferring: [up('a', 100)] }, 1);
    assert.equal(meter({ bytes: 400, transferring: [up('a', 150), down('r', 250)] }, 1), 150);
    assert.equal(
      meter({ bytes: 5_000, transferring: [up('a', 220), down('s', 10)] }, 1),
      220,
      'r came down to its end, and others that nobody saw',
    );
    assert.equal(meter({ bytes: 9_000, transferring: [up('b', 70), down('t', 10)] }, 1), undefined);
    assert.equal(meter({ bytes: 9_300, transferring: [up('b', 170), down('u', 10)] }, 1), 320);
  });
});
