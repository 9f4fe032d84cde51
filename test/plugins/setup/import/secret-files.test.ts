/** The files of an import's secrets: whole or not at all, and in no folder that somebody else may lead elsewhere. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  mkdir,
  readdir,
  readFile,
  rename,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { ConfigApplication, ConfigApplied, ConfigService } from '../../../../core/contract/config.ts';
import { writeDraft } from '../../../../plugins/setup/import/draft.ts';
import type { Draft } from '../../../../plugins/setup/import/draft.ts';
import type { SecretFile } from '../../../../plugins/setup/import/secret-files.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const NOBODY = 65_534;
const asRoot = { skip: unlessRoot };

describe('the secrets of an import', () => {
  let scratch: Scratch;
  let number = 0;

  before(async () => {
    scratch = await createScratch('secret-files');
  });
  after(() => scratch.close());

  /** A folder with a configuration in it, and one elsewhere that is not to be touched. */
  async function place(): Promise<{ readonly home: string; readonly elsewhere: string }> {
    const [home, elsewhere] = [scratch.path(`home-${(number += 1)}`), scratch.path(`elsewhere-${number}`)];
    for (const folder of [home, elsewhere]) await mkdir(folder, { mode: 0o755 });
    await writeFile(`${home}/mountkeeper.toml`, 'connections = []\n', { mode: 0o600 });
    return { home, elsewhere };
  }

  /** `apply`: what becomes of the configuration, once the secrets are there. */
  function write(
    home: string,
    secrets: readonly SecretFile[] = [{ path: `${home}/secrets/nas-pass`, value: 'geheim' }],
    apply: () => boolean = () => true,
  ): Promise<ConfigApplied> {
    const config: Pick<ConfigService, 'file' | 'apply'> = {
      file: `${home}/mountkeeper.toml`,
      apply: async ({ beforeWrite }: ConfigApplication) => {
        await beforeWrite?.({} as never, {} as never);
        return { ok: apply() } as ConfigApplied;
      },
    };
    return writeDraft({ secrets, edits: [] } as unknown as Draft, config as ConfigService);
  }

  it('are there with mode 0600, in a folder of mode 0700', async () => {
    const { home } = await place();
    assert.equal((await write(home)).ok, true);
    assert.equal(await readFile(`${home}/secrets/nas-pass`, 'utf8'), 'geheim\n');
    assert.equal((await stat(`${home}/secrets/nas-pass`)).mode & 0o777, 0o600);
    assert.equal((await stat(`${home}/secrets`)).mode & 0o777, 0o700);
  });

  it('go into no folder that others may write, or that a link leads to', async () => {
    const { home, elsewhere } = await place();
    await symlink(elsewhere, `${home}/secrets`);
    await assert.rejects(write(home), /secrets is no folder/);
    await rename(`${home}/secrets`, `${home}/link`);
    await mkdir(`${home}/secrets`);
    await chmod(`${home}/secrets`, 0o777);
    await assert.rejects(write(home), /secrets may be written by everybody/);
    await chmod(`${home}/secrets`, 0o700);
    await chmod(home, 0o775);
    await assert.rejects(write(home), /home-\d+ may be written by its group/);
    assert.deepEqual([await readdir(`${home}/secrets`), await readdir(elsewhere)], [[], []]);
  });

  it(
    'are not written by root where another user could lead them elsewhere, and nothing is given away',
    asRoot,
    async () => {
      const { home, elsewhere } = await place();
      await symlink(elsewhere, `${home}/secrets`);
      await chown(home, NOBODY, NOBODY);
      await assert.rejects(write(home), /home-\d+ belongs to user 65534/);
      await chown(home, 0, 0);
      await rename(`${home}/secrets`, `${home}/link`);
      await mkdir(`${home}/secrets`);
      await chown(`${home}/secrets`, NOBODY, NOBODY);
      await assert.rejects(write(home), /secrets belongs to user 65534/);
      await chown(`${home}/secrets`, 0, 0);
      await chown(`${home}/mountkeeper.toml`, NOBODY, NOBODY);
      await assert.rejects(write(home), /mountkeeper\.toml belongs to user 65534/);
      // A link on the way that belongs to somebody else.
      await symlink(home, scratch.path('way'));
      await lchown(scratch.path('way'), NOBODY, NOBODY);
      await assert.rejects(write(scratch.path('way')), /way belongs to user 65534/);
      assert.deepEqual([(await stat(elsewhere)).uid, (await stat(home)).uid], [0, 0]);
      assert.deepEqual([await readdir(elsewhere), await readdir(`${home}/secrets`)], [[], []]);
    },
  );

  it('are gone again, with their folder, when one of them or the configuration cannot be written', async () => {
    const { home } = await place();
    const unwritable = {
      toString: () => assert.fail('the disk is full'),
    } as unknown as string;
    const two = (second: Partial<SecretFile>): readonly SecretFile[] => [
      { path: `${home}/secrets/a`, value: 'one' },
      { path: `${home}/secrets/b`, value: 'two', ...second },
    ];
    await assert.rejects(write(home, two({ value: unwritable })), /the disk is full/);
    assert.equal(existsSync(`${home}/secrets`), false);
    assert.equal((await write(home, two({}), () => false)).ok, false);
    assert.equal(existsSync(`${home}/secrets`), false);
    await assert.rejects(
      write(home, two({}), () => assert.fail('a check broke')),
      /a check broke/,
    );
    assert.equal(existsSync(`${home}/secrets`), false);
    await mkdir(`${home}/secrets`);
    await writeFile(`${home}/secrets/b`, 'of somebody else');
    await assert.rejects(write(home, two({})), /EEXIST/);
    assert.deepEqual(await readdir(`${home}/secrets`), ['b']);
    assert.equal(await readFile(`${home}/secrets/b`, 'utf8'), 'of somebody else');
  });

  it('are whole when a signal comes while they are written', async () => {
    const { home } = await place();
    const listeners = process.listenerCount('SIGHUP');
    const applied = await write(home, undefined, () => process.kill(process.pid, 'SIGHUP'));
    assert.equal(applied.ok, true);
    assert.equal(await readFile(`${home}/secrets/nas-pass`, 'utf8'), 'geheim\n');
    assert.equal(process.listenerCount('SIGHUP'), listeners, 'afterwards a signal ends the process again');
  });
});
