/** What the Containerfile names is there. No image is built here: that takes base images, and minutes. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { KNOWN_GOOD } from '../../plugins/mount/releases/versions.ts';
import { PROJECT } from '../runner/test-files.ts';

describe('the Containerfile', () => {
  it('takes the rclone that the tests know, runs as root, who alone may mount, and keeps no password', async () => {
    const text = await readFile(`${PROJECT}config/container/Containerfile`, 'utf8');
    assert.equal(/^ARG RCLONE_VERSION=(\S+)$/m.exec(text)?.[1], KNOWN_GOOD.join('.'));
    const last = text.slice(text.lastIndexOf('\nFROM '));
    assert.doesNotMatch(last, /^USER /m);
    assert.doesNotMatch(text, /npm ci --/, 'it refuses a lock file without the packages of other platforms');
    assert.match(last, /rm -rf .*\/etc\/mountkeeper\/\*/);
    assert.match(last, /^HEALTHCHECK .* CMD \["mountkeeper", "status"\]$/m);
    for (const [, program = ''] of text.matchAll(/node dist\/(\S+)\.js/g))
      assert.ok(existsSync(`${PROJECT}${program}.ts`), program);
  });
});
