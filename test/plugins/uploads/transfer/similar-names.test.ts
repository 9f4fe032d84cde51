/**
 * Names that differ in case or in their Unicode form alone, on a remote that tells them apart and on one that
 * does not.
 */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import { DETOUR_PREFIX } from '../../../../plugins/uploads/compare/plan-types.ts';
import { folded } from '../../../../plugins/uploads/compare/paths.ts';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

/** The path under which the folder has the entry, or would take a new one. */
function spelled(folder: string, path: string): string {
  let at = '';
  for (const name of path.split('/')) {
    const names = existsSync(join(folder, at)) ? readdirSync(join(folder, at)) : [];
    const found = names.includes(name) ? name : names.find((one) => folded(one) === folded(name));
    at = join(at, found ?? name);
  }
  return at;
}

/** Finds each entry by any spelling, and keeps the one it has, as SMB servers and macOS do. */
function blind(files: RemoteFiles, folder: string): RemoteFiles {
  return new Proxy<RemoteFiles>(files, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const paths = name === 'upload' ? [1] : name === 'moveFile' || name === 'moveFolder' ? [0, 1] : [0];
        for (const at of paths) if (typeof args[at] === 'string') args[at] = spelled(folder, args[at]);
        return (value as (...all: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

for (const isBlind of [false, true])
  describe(`names that differ in case, on a remote that ${isBlind ? 'takes them for one' : 'tells them apart'}`, () => {
    let share: TestShare;

    beforeEach(() => {
      share = new TestShare();
      mkdirSync(join(share.nas, 'Folder'));
      for (const path of ['Text', 'Folder/in', 'caf\u00e9']) {
        writeFileSync(join(share.nas, path), `first ${path.normalize('NFD').replace('\u0301', '')}`);
        utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
      }
      if (isBlind) share.files = blind(share.remote(), share.nas);
      share.up();
    });
    afterEach(() => share.close());

    const run = async (fault?: Fault): Promise<void> => {
      const uploader = share.uploader(fault);
      try {
        await settle(uploader);
      } finally {
        await uploader.stop();
      }
    };
    const files = (): Record<string, string> =>
      Object.fromEntries([...treeOf(share.nas)].filter(([, content]) => content !== '/'));

    /** What is still on its way between two names. */
    const detours = (): string[] => readdirSync(share.nas).filter((name) => name.startsWith(DETOUR_PREFIX));

    it('are renamed into each other: a file without data, a folder with what is in it', async () => {
      renameSync(share.at('Text'), share.at('text'));
      renameSync(share.at('Folder'), share.at('folder'));
      renameSync(share.at('caf\u00e9'), share.at('cafe\u0301'));
      await run();
      assert.deepEqual(files(), {
        text: 'first Text',
        'folder/in': 'first Folder/in',
        'cafe\u0301': 'first cafe',
      });
      assert.deepEqual(share.conflicts, []);
    });

    if (isBlind) {
      const rename = (): void => {
        writeFileSync(share.at('Text'), 'second');
        renameSync(share.at('Text'), share.at('text'));
      };
      /** Kills the uploader in its so many-th rename on the remote, before or after the remote has done it. */
      const killIn = async (which: number, at: 'before' | 'after'): Promise<void> => {
        let renames = 0;
        let tell = (): void => undefined;
        const isThere = new Promise<void>((resolve) => (tell = resolve));
        const uploader = share.uploader((call, when) => {
          if (call === 'moveFile' && when === 'before') renames += 1;
          if (call !== 'moveFile' || when !== at || renames !== which) return undefined;
          tell();
          return new Promise(() => undefined);
        });
        uploader.flush();
        await uploader.look(new AbortController().signal);
        await isThere;
        await share.renew();
      };

      for (const which of [1, 2])
        for (const at of ['before', 'after'] as const)
          it(`are renamed into each other with new content, after a kill ${at} rename ${which}`, async () => {
            rename();
            await killIn(which, at);
            await run();
            assert.equal(files()['text'], 'second');
            assert.deepEqual(Object.keys(files()).sort(), ['Folder/in', 'caf\u00e9', 'text']);
            assert.deepEqual(detours(), []);
            assert.deepEqual(share.conflicts, []);
          });

      it('leave nothing on their way when the file goes after a kill', async () => {
        rename();
        await killIn(1, 'after');
        rmSync(share.at('text'));
        await run();
        assert.deepEqual(Object.keys(files()).sort(), ['Folder/in', 'caf\u00e9']);
        assert.deepEqual(detours(), []);
      });
    }

    it('are renamed into each other with new content', async () => {
      writeFileSync(share.at('Text'), 'second');
      renameSync(share.at('Text'), share.at('text'));
      await run();
      assert.equal(files()['text'], 'second');
      assert.deepEqual(Object.keys(files()).sort(), ['Folder/in', 'caf\u00e9', 'text']);
      assert.deepEqual(share.conflicts, []);
    });

    it('are no file that others have deleted: what goes up under the new name stays', async () => {
      writeFileSync(share.at('Text'), 'the second');
      await run();
      const { mtimeMs } = statSync(share.at('Text'));
      rmSync(join(share.nas, 'Text'));
      renameSync(share.at('Text'), share.at('text'));
      utimesSync(share.at('text'), mtimeMs / 1_000, mtimeMs / 1_000);
      await run();
      assert.equal(files()['text'], 'the second');
    });

    it('are of three spellings, and one is left', async () => {
      writeFileSync(share.at('Text'), 'the second');
      await run();
      for (const [from, to] of [
        ['Text', 'TEXT'],
        ['TEXT', 'text'],
      ] as const) {
        renameSync(share.at(from), share.at(to));
        const uploader = share.uploader((call, when) => {
          if (call === 'upload' && when === 'before') throw refusal('No room.');
        });
        uploader.flush();
        await uploader.look(new AbortController().signal);
        await uploader.settled();
        await uploader.stop();
      }
      await run();
      assert.deepEqual(Object.keys(files()).sort(), ['Folder/in', 'caf\u00e9', 'text']);
      assert.deepEqual(detours(), []);
      assert.deepEqual(share.conflicts, []);
    });

    it('of one that is deleted and another that is renamed', async () => {
      rmSync(share.at('Text'));
      renameSync(share.at('caf\u00e9'), share.at('text'));
      await run();
      assert.deepEqual(files(), { 'Folder/in': 'first Folder/in', text: 'first cafe' });
      assert.deepEqual(share.conflicts, []);
    });

    it('are both there where the remote can, else the second one waits, named, until it is renamed', async () => {
      writeFileSync(share.at('text'), 'another');
      mkdirSync(share.at('folder'));
      writeFileSync(share.at('folder/in'), 'another');
      if (!isBlind) {
        await run();
        assert.equal(files()['text'], 'another');
        assert.equal(files()['folder/in'], 'another');
        assert.equal(files()['Text'], 'first Text');
        return;
      }
      const uploader = share.uploader();
      await assert.rejects(settle(uploader, 6), /takes 'text' and 'Text' for one name/);
      const reasons = uploader.queue().map(({ path, reason }) => `${path}: ${reason}`);
      assert.ok(
        reasons.some((one) => one.startsWith("folder: The remote takes 'folder' and 'Folder' for one name")),
      );
      assert.equal(files()['Text'], 'first Text');
      assert.equal(files()['Folder/in'], 'first Folder/in');
      renameSync(share.at('text'), share.at('text 2'));
      renameSync(share.at('folder'), share.at('folder 2'));
      await settle(uploader);
      await uploader.stop();
      assert.deepEqual(files(), {
        Text: 'first Text',
        'text 2': 'another',
        'Folder/in': 'first Folder/in',
        'folder 2/in': 'another',
        'caf\u00e9': 'first cafe',
      });
      assert.deepEqual(share.conflicts, []);
    });

    it('stay apart from what is deleted: the former one goes when the other is there, which stays', async () => {
      rmSync(share.at('Text'));
      writeFileSync(share.at('text'), 'another');
      const refused = share.uploader((call, when) => {
        if (call === 'upload' && when === 'before') throw refusal('No room.');
      });
      for (let look = 0; look < 3; look += 1) {
        refused.flush();
        await refused.look(new AbortController().signal);
        await refused.settled();
      }
      await refused.stop();
      assert.ok(Object.values(files()).includes('first Text'));
      await run();
      assert.equal(files()['text'], 'another');
      assert.equal('Text' in files(), false);
      assert.deepEqual(share.conflicts, []);
    });
  });
