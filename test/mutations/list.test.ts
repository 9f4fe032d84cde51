import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { PROJECT } from '../runner/test-files.ts';
import { broken, testOf } from './build.ts';
import { MUTATIONS } from './list.ts';

describe('the breaks that the tests must see', () => {
  it('can all be made in the program as it is, and have a test', async () => {
    for (const mutation of MUTATIONS) {
      const { text, whole } = await broken(mutation);
      assert.notEqual(text, whole, mutation.fault);
      assert.ok(
        existsSync(join(PROJECT, testOf(mutation))),
        `'${mutation.fault}': there is no ${testOf(mutation)}`,
      );
    }
    const faults = MUTATIONS.map(({ fault }) => fault);
    assert.equal(new Set(faults).size, faults.length);
  });

  it('are refused when the program has changed under them', async () => {
    const [first] = MUTATIONS;
    await assert.rejects(
      broken({ ...(first ?? assert.fail()), from: 'not in any file' }),
      /stands 0 times in dist\/core\/shares\/monitor\.js/,
    );
    await assert.rejects(broken({ ...(first ?? assert.fail()), from: '_MS' }), /stands \d\d times/);
  });
});
