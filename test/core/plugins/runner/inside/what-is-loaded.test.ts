import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';

const LOADED = new URL('../../../../../core/plugins/runner/inside/loaded-plugin.js', import.meta.url).href;
const ASK = `await import(${JSON.stringify(LOADED)});
const { _cache } = (await import('node:module')).default;
console.log(Object.keys(_cache).map((file) => file.split('/node_modules/').at(-1).split('/lib/')[0]).join(' '));`;

describe('the process of a plugin', () => {
  it('loads nothing of what only the daemon does: each of its libraries costs every process megabytes', () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', ASK], {
      encoding: 'utf8',
    });
    assert.match(stderr, /^$/);
    for (const library of ['tapable', '@hapi/hapi'])
      assert.ok(!stdout.split(/\s+/).includes(library), `${library} in ${stdout}`);
  });
});
