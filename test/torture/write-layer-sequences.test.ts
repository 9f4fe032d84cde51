/** Some of the sequences of `npm run torture`, with every fault. */
import { after, describe, it } from 'node:test';
import { Exhaustive, FAULTS } from '../support/layer/exhaustive.ts';

const exhaustive = new Exhaustive({ length: 2, every: 97 });

for (const fault of FAULTS) {
  describe(`sequences of operations, ${fault.name}`, () => {
    after(() => exhaustive.close());

    it('leave on the NAS what was acknowledged', { timeout: 120_000 }, async (t) => {
      t.diagnostic(await exhaustive.run(fault));
    });
  });
}
