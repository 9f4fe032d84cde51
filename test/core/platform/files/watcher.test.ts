import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { appendFile, mkdir, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { watchFiles } from '../../../../core/platform/files/watcher.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const clock = createClock();
const DEBOUNCE_MS = 100;
/** Long enough for a change to have been told, were there one. */
const QUIET_MS = 5 * DEBOUNCE_MS;

describe('watcher', { concurrency: true }, () => {
  let scratch: Scratch;
  let count = 0;
  before(async () => {
    scratch = await createScratch('watcher');
  });
  after(() => scratch.close());

  async function open(
    prepare: (file: string, folder: string) => Promise<void> = (file) => writeFile(file, 'a = 0\n'),
    given: { pollMs?: number; isKnown?: (text: string) => boolean } = {},
  ) {
    const folder = scratch.path(`watched-${(count += 1)}`);
    const file = `${folder}/config.toml`;
    await mkdir(folder);
    await prepare(file, folder);
    let changes = 0;
    const release = await watchFiles({
      paths: [file],
      debounceMs: DEBOUNCE_MS,
      ...given,
      pollMs: given.pollMs ?? 3_600_000,
      clock,
      log: collectLog().log,
      onChange: () => (changes += 1),
    });
    scratch.defer(release);
    await clock.sleep(QUIET_MS);
    assert.equal(changes, 0, 'nothing has changed yet');
    /** Does something and expects exactly one change, or none. */
    const expect = async (expected: 0 | 1, action: () => Promise<unknown>): Promise<void> => {
      const former = changes;
      await action();
      if (expected === 1) await until('change', () => changes > former, { timeoutMs: 20_000, everyMs: 10 });
      await clock.sleep(QUIET_MS);
      assert.equal(changes - former, expected);
    };
    return { file, folder, release, expect };
  }

  it('tells each way of saving once, again and again', async () => {
    const { file, folder, expect } = await open();
    const ways: readonly (readonly [string, (text: string) => Promise<unknown>])[] = [
      ['in place', (text) => writeFile(file, text)],
      ['appended', (text) => appendFile(file, text)],
      [
        'renamed over',
        (text) => writeFile(`${folder}/.tmp`, text).then(() => rename(`${folder}/.tmp`, file)),
      ],
      ['moved away and written anew', (text) => rename(file, `${file}~`).then(() => writeFile(file, text))],
      [
        'removed, and written anew a little later',
        (text) =>
          unlink(file)
            .then(() => clock.sleep(30))
            .then(() => writeFile(file, text)),
      ],
    ];
    for (const round of [1, 2]) {
      for (const [way, save] of ways) await expect(1, () => save(`# ${way} ${round}\n`));
    }
  });

  it('is silent when nothing but the time changes, or the same text is saved', async () => {
    const { file, folder, expect } = await open();
    await expect(0, () => utimes(file, 1, 1));
    await expect(0, () => writeFile(file, 'a = 0\n'));
    await expect(0, () => writeFile(`${folder}/.tmp`, 'a = 0\n').then(() => rename(`${folder}/.tmp`, file)));
    await expect(0, () => writeFile(`${folder}/other.toml`, 'b = 1\n'));
  });

  it('tells of what its owner does not have, though it was the last that was seen', async () => {
    let owned = 'a = 0\n';
    const { file, expect } = await open(undefined, { isKnown: (text) => text === owned });
    await expect(1, async () => {
      // The owner has written another text, and somebody the former one over it, before any of it was looked
      // at.
      owned = 'a = 1\n';
      await writeFile(file, owned);
      await writeFile(file, 'a = 0\n');
    });
  });

  it('tells a burst of saves once', async () => {
    const { file, expect } = await open();
    await expect(1, async () => {
      for (let save = 1; save < 20; save += 1) writeFileSync(file, `a = ${save}\n`);
    });
  });

  it('passes over a file that is empty or away in the middle of a save', async () => {
    const { file, expect } = await open();
    await expect(1, async () => {
      await writeFile(file, '');
      await clock.sleep(3 * DEBOUNCE_MS);
      await writeFile(file, 'a = 1\n');
    });
    await expect(1, async () => {
      await unlink(file);
      await clock.sleep(3 * DEBOUNCE_MS);
      await writeFile(file, 'a = 2\n');
    });
    await expect(0, async () => {
      await writeFile(file, '');
      await clock.sleep(3 * DEBOUNCE_MS);
      await writeFile(file, 'a = 2\n');
    });
  });

  it('tells in the end when a file stays empty or away', async () => {
    const { file, expect } = await open();
    await expect(1, () => writeFile(file, ''));
    await expect(1, () => unlink(file));
    await expect(1, () => writeFile(file, 'a = 1\n'));
  });

  it('follows a link to the file in another folder, also when the link is changed', async () => {
    const { file, folder, expect } = await open(async (link, inside) => {
      await mkdir(`${inside}/elsewhere`);
      await writeFile(`${inside}/elsewhere/real.toml`, 'a = 0\n');
      await symlink('elsewhere/real.toml', link);
    });
    await expect(1, () => writeFile(`${folder}/elsewhere/real.toml`, 'a = 1\n'));
    await mkdir(`${folder}/third`);
    await writeFile(`${folder}/third/real.toml`, 'a = 2\n');
    await expect(1, () =>
      symlink('third/real.toml', `${folder}/.link`).then(() => rename(`${folder}/.link`, file)),
    );
    await expect(1, () => writeFile(`${folder}/third/real.toml`, 'a = 3\n'));
  });

  it('follows a folder that is swapped under a link, as config maps are', async () => {
    const { folder, expect } = await open(async (link, inside) => {
      await mkdir(`${inside}/..1`);
      await writeFile(`${inside}/..1/config.toml`, 'a = 1\n');
      await symlink('..1', `${inside}/..data`);
      await symlink('..data/config.toml', link);
    });
    for (const version of [2, 3]) {
      await expect(1, async () => {
        await mkdir(`${folder}/..${version}`);
        await writeFile(`${folder}/..${version}/config.toml`, `a = ${version}\n`);
        await symlink(`..${version}`, `${folder}/..tmp`);
        await rename(`${folder}/..tmp`, `${folder}/..data`);
        await rm(`${folder}/..${version - 1}`, { recursive: true });
      });
    }
  });

  it('finds by looking what no event told of', async () => {
    const { file, folder, expect } = await open(async () => undefined, { pollMs: 50 });
    // The folder that is watched goes and comes back: events end with it.
    await expect(1, async () => {
      await rm(folder, { recursive: true });
      await mkdir(folder);
      await clock.sleep(100);
      await writeFile(file, 'a = 1\n');
    });
    await expect(1, () => writeFile(file, 'a = 2\n'));
  });

  it('is silent after its release', async () => {
    const { file, release, expect } = await open();
    await expect(0, async () => {
      await writeFile(file, 'a = 9\n');
      await release();
    });
  });
});
