/** What pages load. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AssetCache, SCRIPTS, SETTINGS_FILES } from '../../../plugins/dashboard/assets.ts';
import { PROJECT } from '../../runner/test-files.ts';

describe('what pages load', () => {
  it('is served with all that it imports', async () => {
    const assets = await new AssetCache(PROJECT).load();
    const seen = new Set<string>([...SCRIPTS, ...SETTINGS_FILES]);
    // A set goes on through what is added meanwhile.
    for (const name of seen) {
      const { plain } = assets.find(name) ?? {};
      assert.ok(plain, name);
      for (const [, imported = ''] of plain.toString().matchAll(/^import (?:[^']+ from )?'\.\/([^']+)';$/gm))
        seen.add(imported);
    }
    assert.ok(seen.has('signs.js') && seen.has('times.js'), [...seen].join(' '));
  });
});
