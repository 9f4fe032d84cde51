// @load loud
// @start 6
/**
 * Some of all sequences of two operations on a share with a write layer, with every fault, one after the other on one
 * daemon; all of them, with a daemon for each fault: `npm run torture`.
 */
import { after, describe, it } from 'node:test';
import { FaultSequences, FAULTS } from '../../support/write-layer/fault-sequences.ts';

describe('sequences of operations', () => {
  const exhaustive = new FaultSequences({ length: 2, every: 193, isShared: true });
  after(() => exhaustive.close());

  for (const fault of FAULTS)
    it(`leave on the NAS what was acknowledged, ${fault.name}`, { timeout: 120_000 }, async (t) => {
      t.diagnostic(await exhaustive.run(fault));
    });
});
