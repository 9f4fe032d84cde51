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

  it('is refused where neither is one', async (t) => {
    const { found } = await room(t, { json: { version: 'new' }, index: plugin() });
    assert.match(
      (await found('none')).problem ?? '',
      /^version must be a text like "1\.0\.0", here or in its package\.json$/,
    );
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
      (await said("Cannot find module 'a/deep/file.js'\nRequire stack:\n- /x.cjs")) ?? '',
      /the package "a", which/,
    );
    assert.match(
      (await said("Cannot find package 'a' imported from /x.js", {
        folder: '/state/installed-plugins/garden',
        stateDir: '/state',
      })) ?? '',
      /^it imports the package "a", which was not installed with it, .*; tell its author, or install another version$/,
    );
  });
});
