/** What was moved aside comes back, whatever users have done to its name and its folder meanwhile. */
import assert from 'node:assert/strict';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { layerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import type { LayerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import { recoverAside, restoreAside, versionOf } from '../../../../../plugins/mount/layer/upper/set-aside.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';

describe('an entry that was moved aside', () => {
  let scratch: Scratch;
  let paths: LayerPaths;
  let aside: string;
  let noData: string;
  let count = 0;
  before(async () => (scratch = await createScratch('set-aside')));
  after(() => scratch.close());
  beforeEach(() => {
    count += 1;
    paths = layerPaths(scratch.path(`cache${count}`));
    for (const folder of [paths.upper, paths.aside]) mkdirSync(folder, { recursive: true });
    aside = join(paths.aside, '0');
    writeFileSync(aside, 'mine');
    const { ino, size, mtimeNs } = lstatSync(aside, { bigint: true });
    noData = versionOf(ino, size, mtimeNs);
  });

  const at = (path: string): string => join(paths.upper, path);
  const back = (path: string, version?: string): Promise<boolean> =>
    restoreAside({ aside, path, noData: version }, paths, collectLog().log);
  const recovered = (): string[] => readdirSync(paths.upper).filter((name) => name.includes('recovered'));

  it('comes back to its folder, which is made again', async () => {
    assert.equal(await back('d/e/f.txt'), true);
    assert.deepEqual([readFileSync(at('d/e/f.txt'), 'utf8'), existsSync(aside)], ['mine', false]);
    assert.equal(await back('d/e/f.txt'), false, 'it is back');
  });

  it('is kept under another name where its own is taken, unless it is the very file that had no data', async () => {
    writeFileSync(at('f.txt'), 'new');
    await back('f.txt', noData);
    assert.deepEqual(readdirSync(paths.upper), ['f.txt']);
    writeFileSync(aside, 'written to since');
    await back('f.txt', noData);
    const [name = ''] = recovered();
    assert.equal(readFileSync(at(name), 'utf8'), 'written to since');
    assert.equal(readFileSync(at('f.txt'), 'utf8'), 'new');
  });

  it('comes back once though a crash came between its two names', async () => {
    await back('f.txt');
    const { ino } = lstatSync(at('f.txt'));
    linkSync(at('f.txt'), aside);
    assert.equal(await back('f.txt'), true);
    assert.deepEqual(
      [readdirSync(paths.upper), lstatSync(at('f.txt')).ino, existsSync(aside)],
      [['f.txt'], ino, false],
    );
  });

  it('is not led out of the share by a symlink in the place of its folder, and is kept in the root', async () => {
    const outside = scratch.path(`outside${count}`);
    mkdirSync(outside);
    symlinkSync(outside, at('d'));
    await back('d/e/f.txt');
    assert.deepEqual([readdirSync(outside), recovered().length], [[], 1]);
    writeFileSync(at('x'), '');
    writeFileSync(aside, 'again');
    await back('x/f2.txt');
    assert.equal(recovered().length, 2);
  });

  it('finds another name where several came back before it, and a shorter one where it would be too long', async () => {
    for (const path of ['f.txt', 'x'.repeat(255)]) {
      writeFileSync(at(path), 'new');
      for (let times = 0; times < 3; times += 1) {
        writeFileSync(aside, `mine ${times}`);
        utimesSync(aside, 1_700_000_000, 1_700_000_000);
        assert.equal(await back(path), true);
      }
    }
    const contents = recovered().map((name) => readFileSync(at(name), 'utf8'));
    assert.deepEqual(
      contents.sort(),
      ['mine 0', 'mine 1', 'mine 2'].flatMap((one) => [one, one]),
    );
    assert.equal(existsSync(aside), false);
  });

  it('leaves no folder behind in which nothing was ever noted', async () => {
    mkdirSync(join(paths.aside, 'empty'));
    mkdirSync(join(paths.aside, 'unknown'));
    writeFileSync(join(paths.aside, 'unknown', '0'), 'somebody has to look');
    assert.equal(await recoverAside(paths, collectLog().log), 0);
    assert.deepEqual(readdirSync(paths.aside).sort(), ['0', 'unknown']);
  });
});
