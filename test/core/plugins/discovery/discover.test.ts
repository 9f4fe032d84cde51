import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Joi } from 'mountkeeper';
import { discoverPlugins } from '../../../../core/plugins/discovery/discover.js';
import type { DiscoveryOptions } from '../../../../core/plugins/discovery/discover.js';
import { assemble } from '../../../../core/config/schema/schema.js';
import { entryOf } from '../../../../core/plugins/discovery/found.js';
import type { FoundPlugin, UsablePlugin } from '../../../../core/plugins/discovery/found.js';
import { BrokenOff } from '../../../../core/plugins/broken-off.ts';
import { actAs, actorNow } from '../../../../core/plugins/instance/acting-plugin.ts';
import { isCarried } from '../../../../core/plugins/runner/runners.js';
import { collectLog } from '../../../support/platform/collected-log.ts';

const shell = (name: string, body = '', more = '') => `
import { definePlugin, Joi } from 'mountkeeper';
${body}
export default definePlugin({ name: '${name}', version: '1.2.3', apiVersion: 1, description: 'd', ${more}
  register(ctx) { ctx.tap('afterMount', () => {}); } });
`;

/** Calls a function where it was made. */
type Ask = (what: typeof actorNow) => ReturnType<typeof actorNow>;

interface Folders {
  readonly root: string;
  /** Where plugins are looked for, in this order. */
  readonly dirs: string[];
  readonly logged: () => Record<string, unknown>[];
  write(file: string, content: string): Promise<void>;
  plugin(name: string, entry: string, json?: object): Promise<void>;
  /** All that was written with `plugin` is on, unless said otherwise. */
  discover(
    importMs?: number,
    enabled?: readonly string[],
    inProcess?: readonly string[],
    shared?: readonly string[],
  ): Promise<readonly FoundPlugin[]>;
}

async function folders(t: TestContext): Promise<Folders> {
  const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-discover-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const { log, entries } = collectLog();
  await mkdir(path.join(root, 'tree'));
  await mkdir(path.join(root, 'third'));
  const write = async (file: string, content: string) => {
    await mkdir(path.dirname(path.join(root, file)), { recursive: true });
    await writeFile(path.join(root, file), content);
  };
  const written = new Set<string>();
  const dirs = [path.join(root, 'third')];
  return {
    root,
    dirs,
    write,
    logged: () => entries,
    async plugin(name, entry, json = {}) {
      written.add(name);
      await write(
        `third/${name}/package.json`,
        JSON.stringify({ name, type: 'module', version: '1.2.3', main: 'index.js', ...json }),
      );
      await write(`third/${name}/index.js`, entry);
    },
    discover: (importMs = 20_000, enabled, inProcess, shared = []) =>
      discoverPlugins({
        inTree: path.join(root, 'tree'),
        thirdPartyDirs: [...dirs],
        stateDir: path.join(root, 'state'),
        enabled: enabled ? new Set(enabled) : written,
        // What the daemon imports itself is the subject here.
        isolation: new Map([
          ...[...(inProcess ?? written)].map((name) => [name, 'none'] as const),
          ...shared.map((name) => [name, 'shared'] as const),
        ]),
        log,
        importMs,
      }),
  };
}

const problem = (found: readonly FoundPlugin[], name: string): string => {
  const one = found.find((each) => each.name === name);
  assert.ok(one?.problem !== undefined, `${name} should be refused`);
  return one.problem;
};

/** The plugin `garden` with a key of its own, and one of shares. */
const withKeys = (at: Folders, share: string): Promise<void> =>
  at.plugin(
    'garden',
    shell('garden', '', `config: { section: 'beds', schema: Joi.object({ rows: Joi.number() }), ${share} },`),
    { mountkeeper: { section: 'beds', shareKeys: ['bed'] } },
  );

describe("a third party's plugin that nobody vouches for", () => {
  const whereItRuns = (name: string): string => shell(name, `(globalThis.imported ??= []).push('${name}');`);
  const imported = (): readonly string[] => (globalThis as { imported?: string[] }).imported ?? [];

  it('is loaded in a process of its own, or in one that it shares; one that is vouched for, in this one', async (t) => {
    const at = await folders(t);
    t.after(() => delete (globalThis as { imported?: string[] }).imported);
    await at.plugin('apart', whereItRuns('apart'));
    await at.plugin('inside', whereItRuns('inside'));
    await at.plugin('together', whereItRuns('together'));
    const found = (await at.discover(20_000, undefined, ['inside'], ['together'])) as readonly UsablePlugin[];
    assert.deepEqual(
      found.map(({ name, isolation, plugin }) => [name, isolation, plugin && isCarried(plugin)]),
      [
        ['apart', 'own', true],
        ['inside', 'none', false],
        ['together', 'shared', true],
      ],
    );
    assert.deepEqual(imported(), ['inside']);
    const off = new BrokenOff({ log: collectLog().log });
    off.meet(found);
    const guilt = found.map(({ name, stagedFolder: folder = '' }) =>
      actAs({ name, folder }, () => off.blame(null, found)?.isSwitchedOff),
    );
    assert.deepEqual(guilt, [false, true, false], 'what it left here before it got a process is not its own');
  });

  it('runs its module and what it declares for its copy, which is another for each content', async (t) => {
    const at = await folders(t);
    const source = (version: string): string => `import { AsyncResource } from 'node:async_hooks';
      const bound = () => AsyncResource.bind((ask) => ask());
      export default { name: 'inside', version: '${version}', apiVersion: 1, description: 'd', asks: [bound()],
        register() { this.asks.push(bound()); } };`;
    for (const version of ['1.0.0', '2.0.0']) {
      await at.plugin('inside', source(version));
      const [found] = (await at.discover()) as readonly (UsablePlugin & { plugin: { asks: Ask[] } })[];
      const { name, stagedFolder, plugin } = found!;
      for (const ask of plugin.asks) assert.deepEqual(ask(actorNow), { name, folder: stagedFolder });
      assert.equal(plugin.asks.length, 2);
    }
  });

  it('is refused with what cannot be carried and what to do; its keys leave the document valid', async (t) => {
    const at = await folders(t);
    await withKeys(at, 'share: Joi.object({ bed: Joi.any() }), check: () => []');
    const found = await at.discover(20_000, undefined, []);
    assert.equal(
      problem(found, 'garden'),
      'it cannot run in a process of its own: config.check cannot be carried, since it is asked inside the ' +
        'daemon; if you trust it, set isolation = "none" in its table of the file',
    );
    const { schema } = assemble(found.flatMap(entryOf));
    const { error } = schema.validate({
      connections: [],
      shares: [],
      beds: { rows: 'many' },
      plugins: { garden: { enabled: true } },
    });
    assert.equal(error, undefined);
    assert.equal((await at.discover(20_000, undefined, ['garden']))[0]?.problem, undefined);
  });

  it('leaves the document valid with its keys, too, where its schema is refused in the end', async (t) => {
    const at = await folders(t);
    await withKeys(at, 'share: Joi.object({ bed: Joi.required() })');
    const found = await at.discover(20_000, undefined, []);
    assert.match(problem(found, 'garden'), /must not make a document invalid/);
    const { error } = assemble(found.flatMap(entryOf)).schema.validate({
      connections: [],
      shares: [{ name: 'a', connection: 'b', bed: 1 }],
      beds: { rows: 'many' },
    });
    assert.equal(error, undefined);
  });
});

describe('discovery', () => {
  it("finds a stranger's plugin, gives it the host's own Joi, and leaves it off", async (t) => {
    const at = await folders(t);
    await at.plugin(
      'garden',
      `import { depth } from './deep/depth.js';\n${shell('garden', '', 'config: { schema: Joi.object({ depth }) },')}`,
    );
    await at.write(
      'third/garden/deep/depth.js',
      "import { Joi } from 'mountkeeper';\nexport const depth = Joi.number().default(1);",
    );
    const [found] = await at.discover();
    assert.ok(found?.plugin, JSON.stringify(found));
    assert.equal(found.thirdParty, true);
    assert.ok(Joi.isSchema(found.plugin.config?.schema));
    assert.equal(Object.getPrototypeOf(found.plugin.config?.schema), Object.getPrototypeOf(Joi.object()));
    assert.deepEqual(
      found.ledger.taps.map((tap) => tap.hook),
      ['afterMount'],
    );
    assert.deepEqual(
      (await readdir(path.join(at.root, 'state/plugins')))
        .map((name) => name.replace(/@[0-9a-f]{12}$/, '@…'))
        .sort(),
      ['garden@…', 'node_modules'],
    );
  });

  it("gives it the host's own package also where its author keeps another one for tests", async (t) => {
    const at = await folders(t);
    await at.plugin(
      'garden',
      shell('garden', '', 'config: { schema: Joi.object({ depth: Joi.number() }) },'),
    );
    await at.write(
      'third/garden/node_modules/mountkeeper/package.json',
      '{ "type": "module", "exports": "./index.js" }',
    );
    await at.write('third/garden/node_modules/mountkeeper/index.js', "throw new Error('the author\\'s');");
    const [found] = await at.discover();
    assert.ok(found?.plugin, JSON.stringify(found));
    assert.equal(Object.getPrototypeOf(found.plugin.config?.schema), Object.getPrototypeOf(Joi.object()));
    await at.write('third/garden/node_modules/mountkeeper/index.js', '// another version');
    assert.equal((await at.discover())[0]?.plugin, found.plugin);
  });

  it('imports each content once: the same object for the same content, also after a change back', async (t) => {
    const at = await folders(t);
    await at.plugin(
      'garden',
      `import { text } from './text.js';\n${shell('garden', '', 'description: text,')}`,
    );
    const read = async (text: string) => {
      await at.write('third/garden/text.js', `export const text = '${text}';`);
      return (await at.discover())[0]?.plugin;
    };
    const first = await read('one');
    assert.equal(await read('one'), first);
    const second = await read('two');
    assert.equal(second?.description, 'two', 'a nested file is read anew');
    assert.notEqual(second, first);
    assert.equal(await read('one'), first);
  });

  it('keeps copies of the last three contents of a plugin, and the one in use', async (t) => {
    const at = await folders(t);
    const copies = async () =>
      (await readdir(path.join(at.root, 'state/plugins'))).filter((name) => name.startsWith('garden@'));
    const use = async (text: string) => {
      await at.plugin('garden', shell('garden', `// ${text}`));
      const [found] = await at.discover();
      assert.equal(found?.problem, undefined);
      return path.basename((found as { stagedFolder?: string }).stagedFolder ?? '');
    };
    const first = await use('0');
    for (const text of ['1', '2', '0', '3', '4']) await use(text);
    assert.equal((await copies()).length, 3);
    assert.ok((await copies()).includes(first), 'it was used again since');
    await use('0');
    assert.ok((await copies()).includes(first));
  });

  it('keeps files of packages that did not change once for all copies', async (t) => {
    const at = await folders(t);
    const depth = 'third/garden/node_modules/depth';
    await at.write(`${depth}/package.json`, '{ "name": "depth", "main": "index.js" }');
    await at.write(`${depth}/index.js`, 'exports.depth = 1;');
    await at.write('third/garden/node_modules/sun/index.js', 'exports.sun = 1;');
    const copyOf = async (text: string): Promise<string> => {
      await at.plugin('garden', shell('garden', `import 'depth'; // ${text}`));
      return ((await at.discover())[0] as { stagedFolder?: string }).stagedFolder ?? '';
    };
    const first = await copyOf('one');
    // As it is where runners have a user of their own.
    await chmod(path.join(first, 'node_modules/depth/index.js'), 0o640);
    await at.write('third/garden/node_modules/sun/index.js', 'exports.sun = 2;');
    const second = await copyOf('two');
    assert.notEqual(first, second);
    const inode = async (folder: string, file: string): Promise<number> =>
      (await lstat(path.join(folder, file))).ino;
    const kept = 'node_modules/depth/index.js';
    assert.equal(await inode(first, kept), await inode(second, kept));
    assert.notEqual(await inode(path.join(at.root, 'third/garden'), kept), await inode(second, kept));
    for (const changed of ['node_modules/sun/index.js', 'index.js'])
      assert.notEqual(await inode(first, changed), await inode(second, changed), changed);
    assert.equal(await readFile(path.join(first, 'node_modules/sun/index.js'), 'utf8'), 'exports.sun = 1;');
  });

  it('copies what a plugin depends on, not what only its author needs', async (t) => {
    const at = await folders(t);
    const modules = {
      sun: { dependencies: { light: '1' } },
      light: {},
      '@garden/soil': {},
      byhand: {},
      'test-tool': { dependencies: { light: '1', 'big-one': '1', '@dev/deep': '1' } },
      'big-one': {},
      '@dev/deep': {},
    };
    for (const [name, json] of Object.entries(modules)) {
      await at.write(
        `third/garden/node_modules/${name}/package.json`,
        JSON.stringify({ name, main: 'index.js', ...json }),
      );
      await at.write(`third/garden/node_modules/${name}/index.js`, 'exports.name = 1;');
    }
    await at.write('third/garden/node_modules/.bin/test-tool', '#!/bin/sh');
    await at.plugin(
      'garden',
      shell('garden', "import 'sun';\nimport 'light';\nimport '@garden/soil';\nimport 'byhand';"),
      {
        dependencies: { sun: '1' },
        peerDependencies: { '@garden/soil': '1' },
        devDependencies: { 'test-tool': '1', '../../..': '1' },
      },
    );
    const [found] = await at.discover();
    assert.equal(found?.problem, undefined);
    const staged = path.join((found as { stagedFolder?: string }).stagedFolder ?? '', 'node_modules');
    const names = (await readdir(staged, { recursive: true }))
      .filter((name) => name.endsWith('index.js'))
      .map((name) => path.dirname(name));
    assert.deepEqual(names.sort(), ['@garden/soil', 'byhand', 'light', 'sun']);
    assert.ok(!(await readdir(staged)).includes('.bin'));
  });

  it('names what is wrong with modules that cannot be loaded, with file and line, and survives them', async (t) => {
    const at = await folders(t);
    await at.plugin('syntax', 'const a = 1;\nconst = 2;\n');
    await at.plugin('throws', '\nthrow new Error("no garden here");\n');
    await at.plugin('missing', "import x from 'left-pad';\nexport default x;");
    await at.plugin('exits', 'process.exit(3);');
    await at.plugin('waits', 'await new Promise(() => {});');
    await at.plugin(
      'register',
      shell('register').replace("ctx.tap('afterMount', () => {});", 'throw new Error("not today");'),
    );
    await at.plugin('good', shell('good'));
    const found = await at.discover();
    const here = (file: string) => path.join(at.root, 'third', file);
    assert.equal(
      problem(found, 'syntax'),
      (
        'it cannot be loaded: SyntaxError: Missing initializer in const declaration ' +
        `(${here('syntax/index.js')}:2)`
      ).replace('Missing initializer in const declaration', "Unexpected token '='"),
    );
    assert.equal(
      problem(found, 'throws'),
      `it cannot be loaded: no garden here (${here('throws/index.js')}:2)`,
    );
    assert.match(
      problem(found, 'missing'),
      /it imports the package "left-pad", .* run 'npm install left-pad' in /,
    );
    assert.match(problem(found, 'exits'), /ended the process while it was loaded \(exit code 3\)/);
    assert.match(problem(found, 'waits'), /never finishes loading/);
    assert.match(problem(found, 'register'), /not today/);
    assert.ok(found.find((one) => one.name === 'good')?.plugin);
  });

  it('ends a module that loops for ever at its deadline', async (t) => {
    const at = await folders(t);
    await at.plugin('loops', 'for (;;) {}');
    assert.match(problem(await at.discover(1_500), 'loops'), /did not finish loading within 1\.5 s/);
  });

  it('refuses what would clash, with the sentence that mends it', async (t) => {
    const at = await folders(t);
    await at.write(
      'tree/mount/index.js',
      "export default { name: 'mount', version: '1.0.0', apiVersion: 1, description: 'd', register() {} };",
    );
    await at.write('tree/package.json', '{ "type": "module" }');
    const mark = path.join(at.root, 'its code was run');
    const leaves = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, '');`;
    await at.plugin('mount', shell('mount', leaves));
    await at.plugin('old', shell('old').replace('apiVersion: 1', 'apiVersion: 0'));
    await at.plugin('heavy', shell('heavy'), { dependencies: { mountkeeper: '1' } });
    await at.plugin('empty', shell('empty'), { main: 'dist/index.js' });
    await at.plugin(
      'nosy',
      shell('nosy', '', "config: { section: 'web', schema: Joi.object({ port: Joi.number() }) },"),
      { mountkeeper: { section: 'web' } },
    );
    await at.plugin(
      'keyed',
      shell('keyed', '', 'config: { schema: Joi.object({}), share: Joi.object({ name: Joi.string() }) },'),
      { mountkeeper: { shareKeys: ['name'] } },
    );
    await at.write('third/notes/readme.txt', 'no plugin');
    const found = await at.discover();
    assert.equal(found.find((one) => one.name === 'mount')?.thirdParty, false);
    assert.match(
      problem(found, `mount (${path.join(at.root, 'third')})`),
      /the name "mount" is taken by a plugin that comes with Mountkeeper; rename/,
    );
    assert.equal(existsSync(mark), false, 'the switch means the plugin of the package');
    assert.match(problem(found, 'old'), /written for apiVersion 0/);
    assert.match(problem(found, 'heavy'), /lists mountkeeper under dependencies/);
    assert.match(
      problem(found, 'empty'),
      /its entry dist\/index\.js does not exist; name a \.js, \.mjs or \.ts file/,
    );
    assert.match(problem(found, 'nosy'), /clash.*the section \[web\] is not its own/);
    assert.match(problem(found, 'keyed'), /clash.*name/);
    assert.match(problem(found, 'notes'), /has no readable package\.json; add one/);
  });

  it('says of two folders of one name which is used, and of the other one what to do', async (t) => {
    const at = await folders(t);
    await at.plugin('garden', shell('garden'));
    await at.write('other/garden/package.json', '{ "type": "module", "version": "2.0.0" }');
    await at.write('other/garden/index.js', shell('garden'));
    at.dirs.push(path.join(at.root, 'other'));
    for (let turns = 0; turns < 2; turns += 1) {
      const [first = '', second = ''] = at.dirs.reverse();
      const found = await at.discover();
      assert.equal(found.find((one) => one.name === 'garden')?.folder, path.join(first, 'garden'));
      assert.equal(
        problem(found, `garden (${second})`),
        `the name "garden" is taken by the plugin in ${path.join(first, 'garden')}; ` +
          'rename the folder and the plugin',
      );
      assert.equal(found.length, 2);
    }
  });

  it('goes on without a folder that is not there, and says so', async (t) => {
    const at = await folders(t);
    await rm(path.join(at.root, 'third'), { recursive: true });
    assert.deepEqual(await at.discover(), []);
    assert.match(JSON.stringify(at.logged()), /plugin folder cannot be read/);
  });

  it("counts a broken plugin of its own as a guard, a stranger's only if its package says so", async (t) => {
    const at = await folders(t);
    await at.write('tree/package.json', '{ "type": "module" }');
    await at.write('tree/lock/index.js', 'throw new Error("bent");');
    await at.plugin('gate', 'throw new Error("bent");', { mountkeeper: { guard: true } });
    await at.plugin('bench', 'throw new Error("bent");');
    assert.deepEqual(
      (await at.discover()).map((one) => [one.name, one.guard]),
      [
        ['lock', true],
        ['bench', false],
        ['gate', true],
      ],
    );
  });
});

describe('a plugin that is on, and nobody knows whether it lets people in', () => {
  it('counts as a guard where it runs in the daemon, and its package.json is unread, or it is gone', async (t) => {
    const at = await folders(t);
    await at.plugin('blank', '');
    await at.write('third/blank/package.json', '{');
    await at.write('third/idle/package.json', '{');
    await at.plugin('own', '');
    await at.write('third/own/package.json', '{');
    const enabled = ['blank', 'gone', 'elsewhere', 'own'];
    const found = await at.discover(20_000, enabled, ['blank', 'gone']);
    assert.deepEqual(
      found.map((one) => [one.name, one.guard, one.isolation]),
      [
        ['blank', true, 'none'],
        ['gone', true, 'none'],
        ['idle', false, 'own'],
        ['own', false, 'own'],
      ],
    );
    assert.match(
      problem(found, 'gone'),
      /in no folder of plugins; put it back, or set plugins\.gone\.enabled/,
    );
  });
});

describe('a plugin that is changed while it is read', () => {
  it('has the permissions of the package.json that was copied with it, not those that it had before', async (t) => {
    const at = await folders(t);
    const may = (...permissions: readonly string[]) => ({ mountkeeper: { permissions } });
    await at.plugin('garden', shell('garden'), may('network', 'read-status'));
    const later = JSON.stringify({ type: 'module', main: 'index.js', ...may('read-status') });
    const { log } = collectLog();
    const options: DiscoveryOptions = {
      inTree: path.join(at.root, 'tree'),
      thirdPartyDirs: [path.join(at.root, 'third')],
      stateDir: path.join(at.root, 'state'),
      enabled: new Set(['garden']),
      log,
      importMs: 20_000,
      // Asked for when its package.json was read, before the folder is copied.
      get strangersOff() {
        writeFileSync(path.join(at.root, 'third/garden/package.json'), later);
        return undefined as never;
      },
    };
    const [found] = await discoverPlugins(options);
    assert.equal(found?.problem, undefined);
    assert.deepEqual(found?.permissions, ['read-status']);
  });
});
