/**
 * A NAS loses power before it has written to its disks what it acknowledged, and what was compared there: it comes back
 * with the former version, an empty file or none. On a real overlay.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CleanRules, RemoteRoot } from 'mountkeeper';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { clock, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const SECOND = 1_700_000_000;
const HOUR = 3_600_000;
const KEEPS: CleanRules = { listingAgeMs: () => HOUR, keepMs: () => 1_000 * HOUR, minFreeBytes: () => 0 };

describe('a file that was proved before the NAS fell silent', () => {
  let share: TestShare;
  let uploader: ShareUploader;
  let aheadMs: number;
  const root: { -readonly [key in keyof RemoteRoot]: RemoteRoot[key] } = { foundAtMs: 0, isLost: false };

  beforeEach(() => {
    share = new TestShare();
    share.hasHashes = true;
    mkdirSync(join(share.nas, 'd'));
    share.othersWrite('d/a', 'first', SECOND);
    share.up();
    const remote = share.remote();
    share.files = new Proxy(remote, {
      get: (target, name: keyof typeof remote) => (name === 'root' ? root : target[name]),
    });
    Object.assign(root, { foundAtMs: 0, isLost: false, silentSinceMs: undefined, lastSilence: undefined });
    aheadMs = 0;
    uploader = share.uploader(undefined, {
      clean: KEEPS,
      clock: { ...clock, monotonic: () => clock.monotonic() + aheadMs },
    });
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  const write = (text: string): void => {
    writeFileSync(share.at('d/a'), text);
    utimesSync(share.at('d/a'), SECOND + 100, SECOND + 100);
  };
  const fallSilent = (afterMs: number): void => {
    const foundAtMs = clock.monotonic();
    aheadMs = afterMs;
    Object.assign(root, { foundAtMs, silentSinceMs: foundAtMs + aheadMs });
  };
  const answersAgain = async (afterMs: number): Promise<void> => {
    const fromMs = root.silentSinceMs!;
    aheadMs += afterMs;
    await uploader.look(new AbortController().signal);
    Object.assign(root, { silentSinceMs: undefined, lastSilence: { fromMs, toMs: fromMs + afterMs } });
  };
  /** The file goes up; the NAS falls silent so many milliseconds later, and shows what `lose` leaves of it. */
  const loseAfter = async (ms: number, lose: () => void): Promise<void> => {
    write('of users');
    await settle(uploader);
    assert.equal(readFileSync(join(share.nas, 'd/a'), 'utf8'), 'of users');
    fallSilent(ms);
    lose();
    uploader.refreshed('', true);
    await answersAgain(HOUR);
    await uploader.look(new AbortController().signal);
    uploader.refreshed('', true);
    for (let turn = 0; turn < 3; turn += 1) await settle(uploader);
  };
  const contents = (): readonly string[] =>
    [...treeOf(share.nas).values()].filter((one) => one !== '/').sort();

  for (const [what, lose] of [
    ['its former version', () => share.othersWrite('d/a', 'first', SECOND)],
    ['none', () => rmSync(join(share.nas, 'd/a'))],
    ['the very file', () => undefined],
  ] as const)
    it(`is on the NAS again where that has ${what}`, async () => {
      await loseAfter(5_000, lose);
      assert.deepEqual(contents(), ['of users']);
      assert.ok(existsSync(join(share.upper, 'd/a')), 'it stays here as well');
      assert.equal((await uploader.look(new AbortController().signal)).dirtyFiles, 0);
      assert.ok(share.conflicts.every(({ what: told }) => told === 'deleted'));
    });

  it('stays here while it is not known yet that the NAS was silent for long, though that lists again', async () => {
    write('of users');
    await settle(uploader);
    fallSilent(5_000);
    share.othersWrite('d/a', 'first', SECOND);
    uploader.refreshed('', true);
    for (let turn = 0; turn < 3; turn += 1) await settle(uploader);
    assert.equal(readFileSync(join(share.upper, 'd/a'), 'utf8'), 'of users');
  });

  it('stays beside an empty one, and a conflict tells', async () => {
    await loseAfter(5_000, () => share.othersWrite('d/a', '', SECOND + 200));
    assert.deepEqual(contents(), ['', 'of users']);
    assert.deepEqual(
      share.conflicts.map(({ path, what }) => [path, what]),
      [['d/a', 'changed']],
    );
  });

  it('is not clean until it was compared again', async () => {
    write('of users');
    await settle(uploader);
    fallSilent(5_000);
    await answersAgain(20_000);
    assert.equal((await uploader.look(new AbortController().signal)).dirtyFiles, 1);
  });

  it('gives way to what others have saved where the NAS has had time to write it', async () => {
    await loseAfter(200_000, () => share.othersWrite('d/a', 'of others', SECOND + 200));
    assert.deepEqual(contents(), ['of others']);
    assert.equal(readFileSync(share.at('d/a'), 'utf8'), 'of others');
    assert.deepEqual(share.conflicts, []);
  });
});
