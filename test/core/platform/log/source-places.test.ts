import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { formatLine } from '../../../../core/platform/log/log-line.ts';
import { withSourcePlaces } from '../../../../core/platform/log/source-places.ts';

/**
 * The first line of the bundle is line 3, column 5 of the module; the second one is line 1 of the other. The third and
 * the fourth are of none.
 */
const MAP = { version: 3, sources: ['lib/one.js', '../two.js'], names: [], mappings: 'AAEI;ACFJ;;A;' };

describe('places of a stack in a bundle', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-places-'));
    await writeFile(join(folder, 'a.js.map'), JSON.stringify(MAP));
    await writeFile(join(folder, 'broken.js.map'), '{');
  });
  after(() => rm(folder, { recursive: true }));

  it('become those in the modules', () => {
    const frames = (...places: readonly string[]): string =>
      ['E: x', ...places.map((at) => `    at f (${at})`)].join('\n');
    assert.equal(
      withSourcePlaces(frames(`file://${folder}/a.js:1:1`, `file://${folder}/a.js:2:7`), `${folder}/`),
      frames(`file://${folder}/lib/one.js:3:5`, `file://${join(folder, '..')}/two.js:1:1`),
    );
  });

  it('stay as they are without a map that can be read, and outside of the package', () => {
    for (const [place, within] of [
      ['broken.js:1:2', folder],
      ['other.js:1:2', folder],
      ['a.js:1:2', join(folder, 'package')],
      // A line that the map passes over, one of no module, and one behind all.
      ['a.js:3:2', folder],
      ['a.js:4:2', folder],
      ['a.js:9:2', folder],
    ] as const) {
      const frame = `    at async file://${folder}/${place}`;
      assert.equal(withSourcePlaces(frame, `${within}/`), frame);
    }
  });

  it('stand in the line of the log', () => {
    const { stack = '' } = new TypeError('of the test');
    const { type, message } = { type: 'TypeError', message: 'of the test' };
    const line = formatLine({ time: 't', level: 'error', msg: 'm', err: { type, message, stack } });
    assert.match(stack, /dist\/test\/core\/platform\/log\/source-places\.test\.js:\d+/);
    assert.match(line, /\/test\/core\/platform\/log\/source-places\.test\.ts:4\d:/);
  });
});
