import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import { RootCheck } from '../../../../plugins/mount/outage/root-check.ts';

describe('the look at the remote path itself', () => {
  it('is made every 5 minutes, tells of a path that is gone, and soon of its return', async () => {
    const clock = createManualClock();
    let problem: string | undefined;
    let looks = 0;
    const rc: RcClient = {
      call: <T>() => {
        looks += 1;
        return problem === undefined
          ? Promise.resolve({ list: [] } as T)
          : Promise.reject(new Error(problem));
      },
      close: () => undefined,
    };
    const root = new RootCheck({ rc, fs: 'nas:p', clock });
    const after = async (ms: number): Promise<string | undefined> => {
      await clock.advance(ms);
      root.lookWhenDue();
      root.lookWhenDue();
      await clock.advance(0);
      return root.trouble;
    };
    problem = 'error in ListJSON: directory not found';
    assert.equal(await after(299_000), undefined);
    assert.match((await after(1_000)) ?? '', /not there on the remote any more/);
    assert.equal(looks, 1);
    problem = 'error in ListJSON: dial tcp: connection refused';
    assert.notEqual(await after(15_000), undefined);
    problem = undefined;
    assert.equal(await after(15_000), undefined);
    problem = 'error in ListJSON: permission denied';
    assert.equal(await after(300_000), undefined);
    assert.equal(looks, 4);
  });
});
