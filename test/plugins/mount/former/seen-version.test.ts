import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { RemoteEntry } from '../../../../core/contract/write-layer.ts';
import { hasContent, isSeenVersion } from '../../../../plugins/mount/former/seen-version.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

const TIME = '2026-11-21 08:56:23.25 +0000 UTC';
const MS = Date.parse('2026-11-21T08:56:23.25Z');
const file = (bytes: number, modifiedMs = MS, md5?: string): RemoteEntry => ({
  name: 'a',
  kind: 'file',
  version: { bytes, modifiedMs, ...(md5 !== undefined && { hash: { kind: 'md5', value: md5 } }) },
});

describe('the version that a former version changed', () => {
  it('is known by size and time, or by its hash; nothing there replaces nothing', () => {
    assert.equal(isSeenVersion(`10,${TIME}`, file(10)), true);
    assert.equal(isSeenVersion('10,abc', file(10, 0, 'abc')), true);
    assert.equal(isSeenVersion(`10,${TIME},abc`, file(10, MS, 'abc')), true);
    assert.equal(isSeenVersion(`10,${TIME}`, undefined), true);
    assert.equal(isSeenVersion('', undefined), true);
  });

  it('is another one, or cannot be told, in every other case', () => {
    const cases: readonly (readonly [string, RemoteEntry])[] = [
      ['', file(10)],
      ['10', file(10)],
      ['10,', file(10, MS, 'abc')],
      ['torn', file(10)],
      [`11,${TIME}`, file(10)],
      [`10,${TIME}`, file(10, MS + 1_000)],
      ['10,abc', file(10, MS, 'abd')],
      ['10,abc', file(10)],
      [`10,${TIME}`, { name: 'a', kind: 'folder' }],
    ];
    for (const [fingerprint, now] of cases) assert.equal(isSeenVersion(fingerprint, now), false, fingerprint);
  });

  it('is ours where an upload arrived that nobody heard the end of, told by its hash alone', async (t) => {
    const scratch = await createScratch('seen');
    t.after(() => scratch.close());
    const content = scratch.path('a');
    await writeFile(content, 'ten bytes!');
    const md5 = createHash('md5').update('ten bytes!').digest('hex');
    assert.equal(await hasContent(file(10, MS, md5), content), true);
    assert.equal(await hasContent(file(10, MS, 'abc'), content), false);
    assert.equal(await hasContent(file(10), content), false);
    assert.equal(await hasContent(undefined, content), false);
  });
});
