/** When an rclone is replaced whose mount answers while its remote control does not. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { SilentControl } from '../../../../../plugins/mount/layer/health/silent-control.ts';
import type { Controlled } from '../../../../../plugins/mount/layer/health/silent-control.ts';

interface Fake extends Controlled {
  answers: boolean;
  idle: () => Promise<boolean>;
}

describe('an rclone whose remote control is silent', () => {
  const lower = (): Fake => {
    const fake: Fake = {
      answers: false,
      idle: () => Promise.resolve(true),
      controlAnswers: () => Promise.resolve(fake.answers),
      isIdle: () => fake.idle(),
    };
    return fake;
  };
  /** Checks every two seconds, for so long; how much later it was replaced, if it was. */
  const watch = (): {
    control: SilentControl<Fake>;
    replaced: (of: Fake, forMs: number) => Promise<number | undefined>;
  } => {
    const clock = createManualClock();
    let last: Fake | undefined;
    const control = new SilentControl<Fake>(clock, (one) => (last = one));
    const replaced = async (of: Fake, forMs: number): Promise<number | undefined> => {
      last = undefined;
      for (let ms = 0; ms <= forMs; ms += 2_000) {
        await control.check(of);
        if (last === of) return ms;
        await clock.advance(2_000);
      }
      return undefined;
    };
    return { control, replaced };
  };

  it('is replaced after 20 s', async () => {
    assert.equal(await watch().replaced(lower(), 60_000), 20_000);
  });

  it('is replaced after a minute where files are open, or where that cannot be told', async () => {
    for (const idle of [() => Promise.resolve(false), () => Promise.reject(new Error('no /proc'))])
      assert.equal(await watch().replaced(Object.assign(lower(), { idle }), 90_000), 60_000);
  });

  it('stays where it answers in between, and so does the next one', async () => {
    const { control, replaced } = watch();
    const first = lower();
    assert.equal(await replaced(first, 16_000), undefined);
    control.answered();
    assert.equal(await replaced(first, 16_000), undefined);
    first.answers = true;
    assert.equal(await replaced(first, 60_000), undefined);
    first.answers = false;
    assert.equal(await replaced(first, 16_000), undefined);
    assert.equal(await replaced(lower(), 16_000), undefined);
  });
});
