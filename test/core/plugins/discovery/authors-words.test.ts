/** What the author of a plugin left out: its version is its package's, and a package that is missing is named. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import type { Isolation } from '../../../../core/config/checks/third-party.js';
import { discoverPlugins } from '../../../../core/plugins/discovery/discover.js';
import type { FoundPlugin } from '../../../../core/plugins/discovery/found.js';
import { missingPackage } from '../../../../core/plugins/discovery/missing-package.js';
import { letOthersEnter } from '../../../support/platform/folder-access.ts';

const ISOLATIONS: readonly Isolation[] = ['own', 'shared', 'none'];

interface Room {
  readonly root: string;
  /** Writes a file of the plugin. */
  write(file: string, text: string): Promise<void>;
  /** The plugin `garden`, as it is found. */
  found(isolation: Isolation): Promise<FoundPlugin>;
}

async function room(t: TestContext, { json = {}, index = '' }): Promise<Room> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'mountkeeper-author-')));
  t.after(() => rm(root, { recursive: true, force: true }));
  await letOthersEnter(root);
  await mkdir(path.join(root, 'dirs/garden'), { recursive: true });
  await writeFile(path.join(root, 'dirs/garden/package.json'), JSON.stringify({ type: 'module', ...json }));
  await writeFile(path.join(root, 'dirs/garden/index.js'), index);
  return {
    root,
    write: async (file, text) => {
      const at = path.join(root, 'dirs/garden', file);
      await mkdir(path.dirname(at), { recursive: true });
      await writeFile(at, text);
    },
    found: async (isolation) => {
      const all = await discoverPlugins({
        inTree: path.join(root, 'none'),
        thirdPartyDirs: [path.join(root, 'dirs')],
        stateDir: path.join(root, 'state'),
        enabled: new Set(['garden']),
        isolation: new Map([['garden', isolation]]),
        log: pino({ level: 'silent' }),
        importMs: 20_000,
      });
      return all.find(({ name }) => name === 'garden') as FoundPlugin;
    },
  };
}

const plugin = (version = ''): string =>
  `export default { name: 'garden', ${version} apiVersion: 1, description: 'Waters.', register() {} };`;

describe('the version of a plugin', () => {
  for (const isolation of ISOLATIONS) {
    it(`is that of its package.json where it gives none: ${isolation}`, async (t) => {
      const { found } = await room(t, { json: { version: '3.2.1' }, index: plugin() });
      const first = await found(isolation);
      assert.deepEqual([first.problem, first.version, first.plugin?.version], [undefined, '3.2.1', '3.2.1']);
    });

    it(`is its own where it gives one: ${isolation}`, async (t) => {
      const { found } = await room(t, { json: { version: '3.2.1' }, index: plugin("version: '1.0.0',") });
      assert.equal((await found(isolation)).version, '1.0.0');
    });
  }

  it('does not make another plugin of it each time that it is looked for', async (t) => {
    const { found } = await room(t, { json: { version: '3.2.1' }, index: plugin() });
    assert.equal((await found('none')).plugin, (await found('none')).plugin);
  });

  for (const json of [{ version: 'new' }, {}])
    it(`is refused where neither is one: ${JSON.stringify(json)}`, async (t) => {
      const { found } = await room(t, { json, index: plugin() });
      for (const isolation of ISOLATIONS)
        assert.match(
          (await found(isolation)).problem ?? '',
          /^version must be a text like "1\.0\.0", here or in its package\.json$/,
        );
    });

  for (const isolation of ISOLATIONS)
    it(`leaves it its class's private fields: ${isolation}`, async (t) => {
      const index = `class Garden { name = 'garden'; apiVersion = 1; description = 'Waters.'; #beds = 'roses';
        register(ctx) { ctx.tap('collectNotices', () => []); ctx.effect(this.#beds, () => () => undefined); } }
        export default new Garden();`;
      const { found } = await room(t, { json: { version: '3.2.1' }, index });
      assert.equal((await found(isolation)).problem, undefined);
    });
});

describe('a package that a plugin imports and that is not there', () => {
  const cases: readonly (readonly [what: string, json: object, said: RegExp])[] = [
    [
      'that its package.json does not name',
      {},
      /is not in its node_modules; run 'npm install left-pad' in \S+\/dirs\/garden$/,
    ],
    [
      'that was not installed',
      { dependencies: { 'left-pad': '1' } },
      /is not in its node_modules; run 'npm install' in \S+\/dirs\/garden$/,
    ],
    [
      'that is there to develop it alone',
      { devDependencies: { 'left-pad': '1' } },
      /stands under devDependencies, .*; move it to dependencies in .*, and run 'npm install' in \S+\/dirs\/garden$/,
    ],
  ];
  for (const [what, json, said] of cases)
    for (const isolation of ISOLATIONS)
      it(`is named, with what to do: one ${what}, ${isolation}`, async (t) => {
        const { found } = await room(t, { json, index: `import 'left-pad';\n${plugin()}` });
        const { problem = '' } = await found(isolation);
        assert.match(problem, /^it imports the package "left-pad", which /);
        assert.match(problem, said);
      });

  for (const json of [{}, { devDependencies: { joi: '18' } }])
    for (const isolation of ISOLATIONS)
      it(`is to be had from Mountkeeper where that has it: ${JSON.stringify(json)}, ${isolation}`, async (t) => {
        const { found } = await room(t, { json, index: `import 'joi';\n${plugin()}` });
        assert.equal(
          (await found(isolation)).problem,
          'it imports the package "joi", which a plugin has from Mountkeeper alone; ' +
            "import Joi and Boom from 'mountkeeper'",
        );
      });

  for (const isolation of ISOLATIONS)
    it(`is named where it is required: ${isolation}`, async (t) => {
      const { found, write } = await room(t, { index: `import './beds.cjs';\n${plugin()}` });
      await write('beds.cjs', "require('left-pad');");
      assert.match(
        (await found(isolation)).problem ?? '',
        /^it imports the package "left-pad", which is not /,
      );
      await write('beds.cjs', "require('spade');");
      await write('node_modules/spade/index.js', "require('./lib.js');");
      await write('node_modules/spade/lib.js', "require('left-pad');");
      assert.match(
        (await found(isolation)).problem ?? '',
        /^its package "spade" imports the package "left-pad", which is not /,
      );
    });

  it('is told from a file of its own, and named where another package wants it', async () => {
    const at = { folder: '/srv/plugins/garden', stateDir: '/state' };
    const said = (reason: string, place = at): Promise<string | undefined> => missingPackage(reason, place);
    assert.equal(
      await said(
        "Cannot find module '/srv/plugins/garden/beds.js' imported from /srv/plugins/garden/index.js",
      ),
      undefined,
    );
    assert.equal(await said('no bed'), undefined);
    assert.match(
      (await said(
        "Cannot find package '@a/b' imported from /srv/plugins/garden/node_modules/spade/index.js",
      )) ?? '',
      /^its package "spade" imports the package "@a\/b", .*; run 'npm install @a\/b' in \/srv\/plugins\/garden$/,
    );
    assert.match(
      (await said("Cannot find package 'joi' imported from /srv/plugins/garden/node_modules/spade/a.js")) ??
        '',
      /^its package "spade" imports the package "joi", .*; run 'npm install joi' in /,
    );
    assert.match(
      (await said("Cannot find module 'a/deep/file.js'\nRequire stack:\n- /x.cjs\n- /node_modules/b/c.js")) ??
        '',
      /^it imports the package "a", which/,
    );
    assert.match(
      (await said("Cannot find module 'a/deep/file.js'")) ?? '',
      /^it, or a package of it, imports the package "a", which/,
      'nobody knows',
    );
  });

  it('is asked for, or not, by the package.json of one that was installed', async (t) => {
    const { root } = await room(t, {});
    const folder = path.join(root, 'installed-plugins/garden');
    await mkdir(folder, { recursive: true });
    const said = async (json: object, importer = 'index.js'): Promise<string> => {
      await writeFile(path.join(folder, 'package.json'), JSON.stringify(json));
      const reason = `Cannot find package 'a' imported from ${folder}/${importer}`;
      return (await missingPackage(reason, { folder, stateDir: root }))?.replace(/^.*?, which /, '') ?? '';
    };
    const another = 'tell its author, or install another version';
    const notAsked = 'was not installed with it, since its package.json does not ask for it';
    assert.equal(await said({}), `${notAsked}; ${another}`);
    assert.match(
      await said({ dependencies: { a: '1' } }),
      /though its package\.json asks for it; install .* again$/,
    );
    assert.match(await said({ peerDependencies: { a: '1' } }), /though its package\.json asks for it; /);
    assert.match(
      await said({ optionalDependencies: { a: '1' } }),
      /^stands under optionalDependencies .*; tell/,
    );
    assert.match(await said({ devDependencies: { a: '1' } }), /^stands under devDependencies, .*; tell/);
    assert.equal(await said({}, 'node_modules/b/index.js'), `was not installed with it; ${another}`);
    await rm(path.join(folder, 'package.json'));
    await mkdir(path.join(folder, 'package.json'));
    const gone = await missingPackage(`Cannot find package 'a' imported from ${folder}/x.js`, {
      folder,
      stateDir: root,
    });
    assert.equal(gone, `it imports the package "a", which was not installed with it; ${another}`);
  });
});
