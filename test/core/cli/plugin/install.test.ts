import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import fsp, { chmod, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import {
  agreementIn,
  agreeToMore,
  agreeToOlder,
  isYes,
} from '../../../../core/cli/plugin/install/consent.ts';
import { fetchPackage } from '../../../../core/cli/plugin/install/fetch.ts';
import { pluginName } from '../../../../core/cli/plugin/install/judge.ts';
import { runNpm } from '../../../../core/cli/plugin/install/npm.ts';
import { isOlder, isPinned, sourceOf } from '../../../../core/cli/plugin/install/source.ts';
import { unfitTable } from '../../../../core/cli/plugin/install/unfit.ts';
import { PluginStore } from '../../../../core/cli/plugin/install/store.ts';
import type { ConfigContribution } from '../../../../core/contract/config.ts';
import type { Permission } from '../../../../core/contract/services.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import { searchedFolders } from '../../../../core/plugins/discovery/installed.ts';
import { diskDeeds } from '../../../support/platform/disk-deeds.ts';

async function scratch(t: TestContext): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-install-')));
  // Not the one of node:fs/promises, which some of these tests stand in for.
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

const SOURCE = { kind: 'registry', spec: 'garden' } as const;

/** What npm leaves in a project. */
async function fetchInto(project: string, packages: readonly string[]): Promise<void> {
  for (const name of packages) await mkdir(join(project, 'node_modules', name), { recursive: true });
  const locked = packages.map((name) => [
    `node_modules/${name}`,
    { version: '1.0.0', integrity: 'sha512-x' },
  ]);
  await writeFile(
    join(project, 'package-lock.json'),
    JSON.stringify({ packages: { '': {}, ...Object.fromEntries(locked) } }),
  );
}

describe('what is to be installed', () => {
  it('is a package, a folder or a tarball, and never an option or an address', async (t) => {
    const folder = await scratch(t);
    await writeFile(join(folder, 'garden-1.0.0.tgz'), '');
    for (const spec of ['garden', 'garden@1.2.3', 'garden@^1 || 2', '@friend/garden@next'])
      assert.deepEqual(await sourceOf(spec), { kind: 'registry', spec });
    assert.deepEqual(await sourceOf(folder), { kind: 'folder', spec: folder });
    const tarball = join(folder, 'garden-1.0.0.tgz');
    assert.deepEqual(await sourceOf(tarball), { kind: 'tarball', spec: tarball });
    for (const spec of [
      '--git=x',
      'git+ssh://host/garden',
      'a@npm:b',
      'user/garden',
      'a@file:b',
      '',
      'a.tgz',
    ])
      await assert.rejects(
        sourceOf(spec),
        /neither a package nor a path|there is no folder or tarball/,
        spec,
      );
  });

  it('is pinned by an exact version alone', () => {
    assert.deepEqual(['a@1.2.3', '@b/a@=1.2.3-rc.1'].map(isPinned), [true, true]);
    assert.deepEqual(['a', '@b/a', 'a@1', 'a@^1.2.3', 'a@next'].map(isPinned), Array(5).fill(false));
  });

  it('is older than another version by its numbers, a preview than its release', () => {
    const inOrder = ['0.9.0', '1.0.0-beta.2', '1.0.0-beta.10', '1.0.0', '1.0.1', '1.2.0', '1.10.0', '2.0.0'];
    for (const [at, one] of inOrder.entries())
      for (const [than, other] of inOrder.entries())
        assert.equal(isOlder(one, other), at < than, `${one} ${other}`);
    assert.equal(isOlder('none', '1.0.0'), false);
  });

  it('is called after its package, unless it says how', () => {
    const own = { mountkeeper: {} };
    assert.equal(pluginName(own, '@friend/mountkeeper-plugin-garden'), 'garden');
    assert.equal(pluginName(own, 'garden'), 'garden');
    assert.equal(pluginName({ mountkeeper: { name: 'pond' } }, 'garden'), 'pond');
    assert.throws(() => pluginName({}, 'garden'), /it is no plugin for Mountkeeper/);
    for (const name of ['../x', '.packages', 'A', 5])
      assert.throws(() => pluginName({ mountkeeper: { name } }, 'garden'), /cannot be the name/);
  });

  it('needs npm, which is named where it is missing', async (t) => {
    const npm = {
      project: await scratch(t),
      command: 'no-npm-here',
      clock: createClock(),
      signal: new AbortController().signal,
    };
    await assert.rejects(
      runNpm(['install'], 'garden', npm),
      /^Error: npm is not on this machine; install it/,
    );
  });
});

describe('a package that is far larger than it looks', () => {
  it('is given up while npm unpacks it', async (t) => {
    const project = await scratch(t);
    const fake = join(await scratch(t), 'npm');
    for (const unpack of [
      `truncate -s 400M ${project}/a ${project}/b`,
      `mkdir ${project}/lib && cd ${project}/lib && seq 40001 | xargs touch`,
    ]) {
      await writeFile(fake, `#!/bin/sh\n${unpack}\nexec sleep 300`, { mode: 0o755 });
      const npm = { project, command: fake, clock: createClock(), signal: new AbortController().signal };
      await assert.rejects(
        fetchPackage(SOURCE, npm),
        /too large for a plugin: npm was ended when it had unpacked more than 512 MiB or 40,000 files/,
      );
      for (const name of ['a', 'b']) await rm(join(project, name), { force: true });
    }
  });
});

describe('the folder of installed plugins', () => {
  it('has the former version until the new one is there, and then no more', async (t) => {
    const stateDir = await scratch(t);
    const store = new PluginStore(stateDir);
    assert.deepEqual(await searchedFolders(['/dirs'], stateDir), ['/dirs']);
    for (const round of [1, 2])
      await store.alone(() =>
        store.withDraft(SOURCE, async (project) => {
          await fetchInto(project, ['garden']);
          assert.equal((await store.list()).length, round - 1);
          const fetched = { package: 'garden', version: '1.0.0', integrity: 'x', hasScripts: false };
          await store.putInPlace('garden', { ...fetched, folder: join(project, 'node_modules', 'garden') });
        }),
      );
    assert.deepEqual(
      (await store.list()).map(({ name, version, source }) => [name, version, source]),
      [['garden', '1.0.0', SOURCE]],
    );
    assert.equal((await readdir(join(store.folder, '.packages'))).length, 1);
    assert.deepEqual(await searchedFolders(['/dirs'], stateDir), ['/dirs', store.folder]);
  });

  it('has a package on the disk before the link leads there, and the link before the former one goes', async (t) => {
    const store = new PluginStore(await scratch(t));
    await store.alone(async () => {
      const former = join(store.folder, '.packages', 'abcdef');
      await mkdir(join(former, 'node_modules', 'garden'), { recursive: true });
      await symlink('.packages/abcdef/node_modules/garden', join(store.folder, 'garden'));
      await store.withDraft(SOURCE, async (project) => {
        await fetchInto(project, ['garden']);
        const deeds = diskDeeds(t, store.folder);
        const fetched = { package: 'garden', version: '1.0.0', integrity: 'x', hasScripts: false };
        await store.putInPlace('garden', { ...fetched, folder: join(project, 'node_modules', 'garden') });
        assert.deepEqual(deeds.slice(0, deeds.indexOf('remove .packages/abcdef') + 1), [
          'sync .packages/#/package-lock.json',
          'sync .packages/#/package.json',
          'sync .packages/#/node_modules/garden',
          'sync .packages/#/node_modules',
          'sync .packages/#',
          'sync .packages',
          'remove .packages/link',
          'rename .packages/link garden',
          'sync ',
          'remove .packages/abcdef',
        ]);
      });
    });
  });

  it('has the new version although the former one cannot be cleared away, and says so', async (t) => {
    const said: string[] = [];
    const store = new PluginStore(await scratch(t), (sentence) => void said.push(sentence));
    await store.alone(() =>
      store.withDraft(SOURCE, async (project) => {
        await fetchInto(project, ['garden']);
        const { rm: remove } = fsp;
        t.mock.method(fsp, 'rm', async (file: string, options: object) => {
          if (file.endsWith('/former')) throw new Error('it is busy');
          await remove(file, options);
        });
        syncBuiltinESMExports();
        await mkdir(join(store.folder, '.packages', 'former'));
        const fetched = { package: 'garden', version: '1.0.0', integrity: 'x', hasScripts: false };
        await store.putInPlace('garden', { ...fetched, folder: join(project, 'node_modules', 'garden') });
      }),
    );
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.deepEqual(said, [`${store.folder} could not be brought in order: it is busy`]);
    assert.deepEqual(
      (await store.list()).map(({ name }) => name),
      ['garden'],
    );
    // The daemon hears of it all the same.
    assert.ok((await readdir(store.folder)).includes('.changed'));
  });

  it('forgets an attempt that failed, and what one that was killed has left', async (t) => {
    const store = new PluginStore(await scratch(t));
    const fail = (): Promise<never> => Promise.reject(new Error('no'));
    await assert.rejects(
      store.alone(() => store.withDraft(SOURCE, fail)),
      /no/,
    );
    assert.deepEqual(await readdir(join(store.folder, '.packages')), []);
    await mkdir(join(store.folder, '.packages', 'abcdef'));
    await store.alone(async () => undefined);
    assert.deepEqual(await readdir(join(store.folder, '.packages')), []);
  });

  it('is not used where others may write, or by two at a time', async (t) => {
    const store = new PluginStore(await scratch(t));
    const inner = (): Promise<unknown> => store.alone(async () => undefined);
    await assert.rejects(store.alone(inner), /another command changes .* try again/);
    await chmod(store.folder, 0o777);
    await assert.rejects(inner(), /may be written by everybody/);
  });
});

describe('a version that asks for more', () => {
  interface Case {
    /** None: what is there cannot be read, or is not there. */
    readonly before?: readonly Permission[] | 'unknown';
    readonly isOn?: boolean;
    readonly isInProcess?: boolean;
    /** Words of the command line. */
    readonly yes?: readonly string[];
    readonly json?: boolean;
    /** What is typed at a terminal; without it there is none. */
    readonly typed?: string;
  }

  /** What was printed; rejects where the version is not taken. */
  async function taken(
    t: TestContext,
    { before = ['network'], isOn = true, isInProcess = false, yes = [], ...how }: Case,
  ): Promise<string> {
    const stateDir = await scratch(t);
    const store = new PluginStore(stateDir);
    await mkdir(join(store.folder, before === 'unknown' ? 'other' : 'garden'), { recursive: true });
    const mountkeeper = { apiVersion: 1, permissions: before };
    await writeFile(
      join(store.folder, before === 'unknown' ? 'other' : 'garden', 'package.json'),
      JSON.stringify({ name: 'garden', version: '1.0.0', type: 'module', main: 'index.js', mountkeeper }),
    );
    let said = '';
    const input = Object.assign(new PassThrough(), { isTTY: how.typed !== undefined });
    if (how.typed !== undefined) input.end(how.typed);
    await agreeToMore(
      { name: 'garden', version: '1.1.0', permissions: ['network', 'own-files', 'processes'] },
      {
        cli: {
          json: how.json === true,
          signal: new AbortController().signal,
          printError: (text) => void (said += text),
        },
        peeked: {
          switched: new Map([['garden', isOn]]),
          isolation: new Map(isInProcess ? [['garden', 'none']] : []),
        },
        store,
        agreement: agreementIn(yes),
      },
      { input, output: new PassThrough().resume() },
    );
    return said;
  }

  it('is not taken where it is on and nobody can be asked, nor without a yes', async (t) => {
    const words =
      /^Error: version 1\.1\.0 may also keep files in its own folder, start processes, and the plugin is on; /;
    await assert.rejects(taken(t, {}), words);
    await assert.rejects(taken(t, {}), /nobody is asked here, --yes agrees to it$/);
    await assert.rejects(taken(t, { json: true, typed: 'y\n' }), /nobody is asked here/);
    for (const typed of ['n\n', '\n', '', 'yesterday\n'])
      await assert.rejects(taken(t, { typed }), /nobody agreed to that$/, JSON.stringify(typed));
  });

  it('is not taken either where nobody knows what the version before it may', async (t) => {
    const before = 'unknown';
    await assert.rejects(
      taken(t, { before }),
      /^Error: version 1\.1\.0 may use the network and .*, keep files.*--yes/,
    );
    await assert.rejects(
      taken(t, { before, isInProcess: true }),
      /may do everything that the daemon may, as it runs inside it, and the plugin is on; .*--yes/,
    );
    assert.equal(await taken(t, { before, isOn: false }), '');
  });

  it('is taken with a yes, beforehand or at the terminal', async (t) => {
    assert.match(await taken(t, { typed: 'y\n' }), /^garden: version 1\.1\.0 may also keep files/);
    assert.equal(await taken(t, { yes: ['--yes'] }), '');
  });

  it('is taken by a yes to just this sentence, and by none to another', async (t) => {
    const words =
      'version 1.1.0 may also keep files in its own folder, start processes, and the plugin is on';
    assert.equal(await taken(t, { yes: [`--yes=${words}`] }), '');
    for (const other of [words.replace(', start processes', ''), words.replace('1.1.0', '1.0.9'), ''])
      await assert.rejects(taken(t, { yes: [`--yes=${other}`] }), /--yes agrees to it$/);
    assert.deepEqual(['--yes', '--yes=x', '--yess', 'yes'].map(isYes), [true, true, false, false]);
    const cli = { json: true, signal: new AbortController().signal, printError: () => undefined };
    const older = (yes: readonly string[]): Promise<void> =>
      agreeToOlder({ name: 'garden', version: '1.0.0' }, '1.1.0', { cli, agreement: agreementIn(yes) });
    await older(['--yes=version 1.0.0 is older than 1.1.0, which is there']);
    await assert.rejects(
      older([`--yes=${words}`]),
      /is older than 1\.1\.0, which is there; nobody is asked here/,
    );
  });

  it('is taken without a word where it is off, or may have it already', async (t) => {
    for (const one of [
      { isOn: false },
      { isInProcess: true },
      { before: ['network', 'files', 'processes'] },
    ] as const)
      assert.equal(await taken(t, one), '');
  });
});

describe('the table of a plugin that has another version now', () => {
  const schema = Joi.object({ beds: Joi.number().default(1) });
  const migrate = (): object => ({ beds: 2 });
  const contribution = { schema, migrate } as ConfigContribution;

  it('is named with what to do, where it does not fit', async (t) => {
    const file = join(await scratch(t), 'mountkeeper.toml');
    const said = async (table: string, of: ConfigContribution | undefined): Promise<string> => {
      await writeFile(file, table);
      return (await unfitTable({ name: 'garden', contribution: of }, file)) ?? 'nothing';
    };
    const former = '[plugins.garden]\nenabled = true\nbed_count = 2\n';
    assert.match(
      await said(former, contribution),
      /^its table \[plugins\.garden\] is not .*bed_count.*"mountkeeper plugin migrate garden" shows it/,
    );
    assert.match(await said(former, { schema }), /has no migration: .*bed_count.*; change it by hand$/);
    for (const table of [
      '[plugins.garden]\nenabled = true\nbeds = 2\n',
      '[plugins]\n',
      '',
      'no = toml = at all',
    ])
      assert.equal(await said(table, contribution), 'nothing', table);
    assert.equal(await said(former, undefined), 'nothing');
  });
});
