/**
 * Names that differ in case or in their Unicode form alone, on a remote that tells them apart and on one that
 * does not.
 */
import assert from 'node:assert/strict';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DETOUR_PREFIX } from '../../../../plugins/uploads/compare/plan-types.ts';
import { caseBlind, forgetfulSmbd } from '../../../support/write-layer/case-blind.ts';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

/** What each kind of remote does with two names that differ in case. */
const KINDS = {
  'tells them apart': undefined,
  'takes them for one': caseBlind,
  'takes them for one, and gives new ones a former spelling': forgetfulSmbd,
} as const;

for (const [kind, over] of Object.entries(KINDS))
  describe(`names that differ in case, on a remote that ${kind}`, () => {
    const isBlind = over !== undefined;
    let share: TestShare;

    beforeEach(async () => {
      share = new TestShare();
      mkdirSync(join(share.nas, 'Folder'));
      for (const path of ['Text', 'Folder/in', 'caf\u00e9']) {
        writeFileSync(join(share.nas, path), `first ${path.normalize('NFD').replace('\u0301', '')}`);
        utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
      }
      if (over !== undefined) share.files = over(share.remote(), share.nas);
      // Somebody has looked for them so.
      for (const path of ['TEXT', 'FOLDER', 'FOLDER/IN', 'CAF\u00c9'])
        await share.remote().stat(path, { signal: new AbortController().signal });
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

    it('are renamed into each other in a folder that was renamed before', async () => {
      renameSync(share.at('Folder'), share.at('New'));
      await run();
      renameSync(share.at('New/in'), share.at('New/IN'));
      await run();
      assert.equal(files()['New/IN'], 'first Folder/in');
      assert.equal('New/in' in files(), false);
      assert.deepEqual(share.conflicts, []);
    });

    if (isBlind) {
      const rename = (): void => {
        writeFileSync(share.at('Text'), 'second');
        renameSync(share.at('Text'), share.at('text'));
      };
      /** Kills the uploader in its so many-th rename on the remote, before or after the remote has done it. */
      const killIn = async (
        which: number,
        at: 'before' | 'after',
        meanwhile: () => void = () => undefined,
      ): Promise<void> => {
        let renames = 0;
        let tell = (): void => undefined;
        const isThere = new Promise<void>((resolve) => (tell = resolve));
        const uploader = share.uploader((call, when) => {
          if (call.startsWith('move') && when === 'before') renames += 1;
          // Before it has told the overlay where that rename has brought something: the next one waits for that.
          if (renames === which && (call === 'takeOut' || call === 'rewriteMarks'))
            return new Promise(() => undefined);
          if (!call.startsWith('move') || when !== at || renames !== which) return undefined;
          tell();
          return new Promise(() => undefined);
        });
        await Promise.race([settle(uploader), isThere]);
        meanwhile();
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

      it('show what is in a folder that a kill has left between its names, also when it is renamed back', async () => {
        renameSync(share.at('Folder'), share.at('folder'));
        await killIn(2, 'before');
        assert.equal(readFileSync(share.at('folder/in'), 'utf8'), 'first Folder/in');
        renameSync(share.at('folder'), share.at('Folder'));
        await run();
        assert.equal(files()['Folder/in'], 'first Folder/in');
        assert.deepEqual(detours(), []);
        assert.deepEqual(share.conflicts, []);
      });

      it('keep content that is on the NAS alone, after a kill, while the share shows the former name', async () => {
        renameSync(share.at('Text'), share.at('text'));
        await killIn(2, 'after');
        const version = { bytes: 'first Text'.length, modifiedMs: 1_700_000_000_000 };
        share.stillShown = new Map([['Text', { name: 'Text', kind: 'file', version }]]);
        await run();
        assert.equal(files()['text'], 'first Text');
        assert.deepEqual(detours(), []);
        assert.deepEqual(share.conflicts, []);
      });

      it('are the former one again when the file is renamed back after a kill between the two', async () => {
        rename();
        await killIn(1, 'after');
        renameSync(share.at('text'), share.at('Text'));
        await run();
        assert.equal(files()['Text'], 'second');
        assert.deepEqual(Object.keys(files()).sort(), ['Folder/in', 'Text', 'caf\u00e9']);
        assert.deepEqual(detours(), []);
        assert.deepEqual(share.conflicts, []);
      });

      it('are the former one again, of a file that had gone up before, on a NAS with hashes', async () => {
        share.hasHashes = true;
        writeFileSync(share.at('Text'), 'second');
        await run();
        renameSync(share.at('Text'), share.at('text'));
        await killIn(1, 'after');
        renameSync(share.at('text'), share.at('Text'));
        await run();
        assert.equal(files()['Text'], 'second');
        assert.deepEqual(detours(), []);
        assert.deepEqual(share.conflicts, []);
      });

      for (const [others, conflicts] of [
        ['', []],
        ['of others', ['deleted']],
      ] as const)
        it(`came by the former one, unseen, and is deleted${others && ', and others replace it'}`, async () => {
          renameSync(share.at('Text'), share.at('text'));
          await killIn(2, 'after', () => {
            if (readdirSync(share.nas).includes('text'))
              renameSync(join(share.nas, 'text'), join(share.nas, 'Text'));
            if (others !== '') writeFileSync(join(share.nas, 'Text'), others);
            // Users find it again once the next daemon has found out where it is; it goes as it would then.
            rmSync(join(share.upper, 'text'));
          });
          await run();
          assert.deepEqual(
            [files()['Text'] ?? '', share.conflicts.map(({ what }) => what)],
            [others, conflicts],
          );
          assert.deepEqual(detours(), []);
          await share.renew();
          assert.equal(readdirSync(share.mount).includes('Text'), others !== '');
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

    it('of one that was moved into a folder, which has the other one now', async () => {
      writeFileSync(share.at('Text'), 'second');
      await run();
      renameSync(share.at('Text'), share.at('Folder/Text'));
      renameSync(share.at('Folder'), share.at('text'));
      await run();
      assert.deepEqual(files(), {
        'text/in': 'first Folder/in',
        'text/Text': 'second',
        'caf\u00e9': 'first cafe',
      });
      assert.deepEqual(share.conflicts, []);
    });

    if (!isBlind) {
      /** The next listing after something was brought to this name does not show it. */
      const late = (name: string): void => {
        const files = share.remote();
        let isLate = false;
        share.files = {
          ...files,
          upload: async (...args) => {
            await files.upload(...args);
            isLate = args[1] === name;
          },
          moveFile: async (...args) => {
            await files.moveFile(...args);
            isLate = args[1] === name;
          },
          list: async (...args) => {
            const all = await files.list(...args);
            const shown = isLate ? all?.filter((one) => one.name !== name) : all;
            isLate = false;
            return shown;
          },
        };
      };

      it("are not each other's where a listing shows neither what went up nor others' by the former name", async () => {
        renameSync(share.at('Text'), share.at('text'));
        await run();
        writeFileSync(join(share.nas, 'Text'), 'of others');
        writeFileSync(share.at('text'), 'second');
        late('text');
        await run();
        assert.equal(readFileSync(join(share.nas, 'Text'), 'utf8'), 'of others');
        assert.equal(readFileSync(join(share.nas, 'text'), 'utf8'), 'second');
        assert.deepEqual(share.conflicts, []);
      });

      it("are not each other's file where a listing does not show what was renamed, but what others have", async () => {
        renameSync(share.at('Text'), share.at('text'));
        await run();
        renameSync(share.at('text'), share.at('other'));
        await run();
        writeFileSync(join(share.nas, 'Text'), 'others say');
        renameSync(share.at('other'), share.at('text'));
        late('text');
        await run();
        assert.equal(readFileSync(join(share.nas, 'Text'), 'utf8'), 'others say');
        assert.equal(readFileSync(join(share.nas, 'text'), 'utf8'), 'first Text');
        assert.deepEqual(share.conflicts, []);
      });
    }

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
