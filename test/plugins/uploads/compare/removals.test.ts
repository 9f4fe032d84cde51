/** What the uploader takes for what users saw when they removed something. On a real overlay. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lookOnly } from '../../../support/write-layer/uploader-crash.ts';
import { refusal, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

describe('a folder that users removed bit by bit', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd/s'), { recursive: true });
    for (const path of ['d/a', 'd/s/b']) writeFileSync(join(share.nas, path), path);
    share.up();
  });
  afterEach(() => share.close());

  it('leaves on the NAS what others put into the first bit since, which users have never seen', async () => {
    rmSync(share.at('d/s'), { recursive: true });
    await lookOnly(share);
    writeFileSync(join(share.nas, 'd/s/others'), 'of others');
    rmSync(share.at('d'), { recursive: true });
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'd/s/others'), 'utf8'), 'of others');
    assert.deepEqual(
      [existsSync(join(share.nas, 'd/a')), existsSync(join(share.nas, 'd/s/b'))],
      [false, false],
    );
    await share.renew();
    assert.equal(readFileSync(share.at('d/s/others'), 'utf8'), 'of others', 'and it shows again');
  });

  const looksUntilSaved = async (rules: { restMs?: number; fault?: Fault } = {}): Promise<void> => {
    const uploader = share.uploader(rules.fault, rules);
    await settle(uploader);
    await uploader.stop();
  };
  /** The NAS has all that is here; what was made here still hides what others put there, as in its first minutes. */
  const savesAndHides = (): Promise<void> => looksUntilSaved({ restMs: 3_600_000 });
  const makes = (...folders: readonly string[]): void => folders.forEach((one) => mkdirSync(share.at(one)));
  const removes = (folder: string): void => rmSync(share.at(folder), { recursive: true });
  const othersSave = (path: string): void => writeFileSync(join(share.nas, path), 'of others');

  /** What users do, and where others save something meanwhile that is never shown to them. */
  const unseen: Readonly<Record<string, { readonly at: string; readonly run: () => Promise<void> }>> = {
    'removed and made anew': {
      at: 'd/s/others',
      run: async () => {
        removes('d/s');
        await lookOnly(share);
        othersSave('d/s/others');
        makes('d/s');
      },
    },
    'removed with the one that it is in, and both made anew': {
      at: 'd/s/others',
      run: async () => {
        removes('d');
        await lookOnly(share);
        othersSave('d/s/others');
        makes('d', 'd/s');
      },
    },
    'made, removed and made anew': {
      at: 'd/new/others',
      run: async () => {
        makes('d/new');
        await savesAndHides();
        othersSave('d/new/others');
        removes('d/new');
        makes('d/new');
      },
    },
    'made, shown, removed and made anew, twice': {
      at: 'd/new/others',
      run: async () => {
        makes('d/new');
        await looksUntilSaved();
        removes('d/new');
        makes('d/new');
        await savesAndHides();
        othersSave('d/new/others');
        removes('d/new');
        makes('d/new');
      },
    },
    'made and removed': {
      at: 'd/new/others',
      run: async () => {
        makes('d/new');
        await savesAndHides();
        othersSave('d/new/others');
        removes('d/new');
      },
    },
    'made, and removed with the one that it is in': {
      at: 'd/new/others',
      run: async () => {
        makes('d/new');
        await savesAndHides();
        othersSave('d/new/others');
        removes('d');
      },
    },
    'removed, kept for what others have in it, and removed with the one that it is in before that shows': {
      at: 'd/s/others',
      run: async () => {
        removes('d/s');
        await lookOnly(share);
        othersSave('d/s/others');
        await savesAndHidesWhiteouts();
        removes('d');
      },
    },
  };
  const savesAndHidesWhiteouts = async (): Promise<void> => {
    const uploader = share.uploader((call, when) => {
      if (call === 'takeOut' && when === 'before') throw refusal('Somebody uses it.');
    });
    for (let looks = 0; looks < 4; looks += 1) {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled().catch(() => undefined);
    }
    await uploader.stop();
  };
  for (const [what, { at, run }] of Object.entries(unseen))
    it(`a folder that was ${what}: what others saved in it, unseen, stays on the NAS`, async () => {
      await run();
      await looksUntilSaved();
      assert.equal(readFileSync(join(share.nas, at), 'utf8'), 'of others');
      await share.renew();
      assert.equal(readFileSync(share.at(at), 'utf8'), 'of others', 'and it shows');
    });

  const seen: Readonly<Record<string, () => Promise<string>>> = {
    'made, with one in it': async () => {
      makes('d/new', 'd/new/in');
      await looksUntilSaved();
      return 'd/new/in';
    },
    'removed and made anew': async () => {
      removes('d/s');
      makes('d/s');
      await looksUntilSaved();
      return 'd/s';
    },
  };
  for (const [what, run] of Object.entries(seen))
    for (const [end, isMadeAnew] of [
      ['removed', false],
      ['removed and made anew', true],
    ] as const)
      it(`a folder that was ${what}, shown, ${end}: what others saved in it, seen, goes with it`, async () => {
        const folder = await run();
        othersSave(`${folder}/others`);
        // Not as at a start, which takes out of the upper folder what it no longer needs.
        share.down();
        share.up();
        assert.equal(readFileSync(share.at(`${folder}/others`), 'utf8'), 'of others');
        removes(folder);
        if (isMadeAnew) makes(folder);
        await looksUntilSaved();
        assert.equal(existsSync(join(share.nas, folder, 'others')), false);
        assert.equal(existsSync(join(share.nas, folder)), isMadeAnew);
        assert.deepEqual(share.conflicts, []);
      });
});
