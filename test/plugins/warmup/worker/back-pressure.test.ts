import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { BackPressure } from '../../../../plugins/warmup/worker/back-pressure.ts';
import { FakeView } from '../fake-view.ts';

describe('manners', () => {
  it('notice others by their movement, not by their presence, and never oneself', async () => {
    const view = new FakeView();
    const manual = createManualClock();
    const manners = new BackPressure(view, manual);
    const disown = manners.own('mine');
    view.moving = [{ path: 'mine', bytes: 1 }];
    await manners.look();
    assert.equal(manners.isBusy, false);
    view.moving = [{ path: 'film', bytes: 1 }];
    await manners.look();
    assert.equal(manners.isBusy, true);
    await manual.advance(1_500);
    await manners.look();
    assert.equal(manners.isBusy, false, 'it stands still');
    disown();
    view.moving = [{ path: 'mine', bytes: 2 }];
    await manners.look();
    assert.equal(manners.isBusy, false, 'what was just read may still be on its way');
    await manual.advance(11_000);
    await manners.look();
    assert.equal(manners.isBusy, false, 'no movement since');
    view.moving = [{ path: 'mine', bytes: 3 }];
    await manners.look();
    assert.equal(manners.isBusy, true);
  });

  it('notice who reads over the same line through another mount, not who sends, and hang on none of them', async () => {
    const [near, silent] = [new FakeView(), new FakeView()];
    const manual = createManualClock();
    silent.transfers = () => new Promise(() => undefined);
    const manners = new BackPressure(new FakeView(), manual, () => [silent, near]);
    const seen = async (path: string, bytes: number, isUpload?: true): Promise<boolean> => {
      near.moving = [{ path, bytes, ...(isUpload && { isUpload }) }];
      void manners.checkOthers();
      await manual.advance(10);
      return manners.isBusy;
    };
    assert.equal(await seen('paused film', 5), false);
    assert.equal(await seen('paused film', 5), false);
    assert.equal(await seen('sent.bin', 7, true), false);
    assert.equal(await seen('sent.bin', 9, true), false);
    assert.equal(await seen('film', 1), true);
    await manual.advance(1_200);
    assert.equal(manners.isBusy, false);
    assert.equal(await seen('film', 2), true);
  });

  it('let one piece of work go at a time beside others, a third of the time', async () => {
    const view = new FakeView();
    const manual = createManualClock();
    const manners = new BackPressure(view, manual);
    const done: number[] = [];
    const work = async (): Promise<void> => {
      await manual.sleep(300);
      done.push(manual.monotonic());
    };
    for (const turn of [manners.turn(work), manners.turn(work)]) void turn;
    await manual.advance(300);
    assert.deepEqual(done, [300, 300], 'both at once while nobody else is there');
    let bytes = 0;
    const watch = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 100) {
        view.moving = [{ path: 'film', bytes: (bytes += 1) }];
        await manners.look();
        await manual.advance(100);
      }
    };
    await watch(100);
    const turns = Array.from({ length: 4 }, () => manners.turn(work));
    done.length = 0;
    await watch(4_000);
    await Promise.all(turns);
    const gaps = done.slice(1).map((at, index) => at - (done[index] ?? 0));
    assert.deepEqual([done.length, gaps], [4, [900, 900, 900]]);
  });
});
