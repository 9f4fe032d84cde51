import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { OtherReaders } from '../../../../plugins/warmup/worker/other-readers.ts';

const VIEWS = `export const openCacheView = ({ name }) => {
  if (name === 'ended') throw new Error('no such process');
  return { transfers: async () => [{ path: name, bytes: 1 }] };
};`;

describe('the neighbours of a warmup', () => {
  it('are opened once each; one that has ended, or cannot be looked into, is left out', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mk-neighbours-'));
    t.after(() => rm(folder, { recursive: true }));
    const module = join(folder, 'view.mjs');
    await writeFile(module, VIEWS);
    const at = (...names: readonly string[]) => names.map((name) => ({ module, parameters: { name } }));
    const neighbours = new OtherReaders();
    await neighbours.set([
      ...at('photos', 'ended', 'music'),
      { module: join(folder, 'nowhere.mjs'), parameters: {} },
    ]);
    const [photos, music] = neighbours.list();
    assert.deepEqual(await Promise.all(neighbours.list().map((one) => one.transfers())), [
      [{ path: 'photos', bytes: 1 }],
      [{ path: 'music', bytes: 1 }],
    ]);
    await neighbours.set(at('music', 'films'));
    assert.equal(neighbours.list()[0], music, 'it is known already');
    assert.deepEqual([neighbours.list().length, neighbours.list().some((one) => one === photos)], [2, false]);
  });
});
