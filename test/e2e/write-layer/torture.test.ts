// @load loud
/** The short form of `npm run torture -- --minutes N`: some rounds of one seed, held against the NAS. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runCampaign } from '../../support/torture/campaign.ts';
import { unlessRoot } from '../../runner/skips.ts';

describe('a torture run', { skip: unlessRoot }, () => {
  it(
    'finds on the NAS what writers over every protocol were told is saved',
    { timeout: 400_000 },
    async (t) => {
      const { wrong, counts } = await runCampaign({
        seed: 1,
        nas: 'sftp',
        rounds: [0, 4],
        say: () => undefined,
      });
      t.diagnostic(JSON.stringify(counts));
      assert.deepEqual(wrong, []);
      assert.ok((counts['done'] ?? 0) > 10 && (counts['looks at the NAS, nobody writing'] ?? 0) >= 2);
    },
  );
});
