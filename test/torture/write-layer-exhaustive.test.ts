/**
 * Every sequence of two operations on a share with a write layer, with every fault. For a machine that has
 * other work, the environment says how many: MOUNTKEEPER_SEQUENCE_EVERY=4 MOUNTKEEPER_SEQUENCE_FROM=1,
 * MOUNTKEEPER_SEQUENCE_ONLY='^rename f g', MOUNTKEEPER_SEQUENCE_LENGTH=3, MOUNTKEEPER_SEQUENCE_NAS=webdav (or smb, s3).
 */
import { after, describe, it } from 'node:test';
import { FaultSequences, FAULTS } from '../support/write-layer/fault-sequences.ts';

const {
  MOUNTKEEPER_SEQUENCE_LENGTH: length = 2,
  MOUNTKEEPER_SEQUENCE_EVERY: every = 1,
  MOUNTKEEPER_SEQUENCE_ONLY: only = '',
} = process.env;
const { MOUNTKEEPER_SEQUENCE_FROM: from = 0, MOUNTKEEPER_SEQUENCE_NAS: nas = 'sftp' } = process.env;
const exhaustive = new FaultSequences({
  length: Number(length),
  every: Number(every),
  from: Number(from),
  only: new RegExp(only),
  protocol: (['webdav', 'smb', 's3'] as const).find((one) => one === nas) ?? 'sftp',
});

for (const fault of FAULTS) {
  describe(`sequences of operations, ${fault.name}`, () => {
    after(() => exhaustive.close());

    it('leave on the NAS what was acknowledged', { timeout: 3_600_000 }, async (t) => {
      t.diagnostic(await exhaustive.run(fault));
    });
  });
}
