// @load loud
// @start 6
/**
 * Some of all sequences of two operations on a share with a write layer, with every fault; all of them: `npm
 * run torture`.
 */
import { after, describe, it } from 'node:test';
import { FaultSequences, FAULTS } from '../../support/write-layer/fault-sequences.ts';

const exhaustive = new FaultSequences({ length: 2, every: 193 });

for (const fault of FAULTS) {
  describe(`sequences of operations, ${fault.name}`, () => {
    after(() => exhaustive.close());

    it('leave on the NAS what was acknowledged', { timeout: 120_000 }, async (t) => {
      t.diagnostic(await exhaustive.run(fault));
    });
  });
}
