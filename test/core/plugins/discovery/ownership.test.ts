/** Plugin folders of others: nothing that somebody else could write is imported, nor what is switched off. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { pino } from 'pino';
import type { Isolation } from '../../../../core/config/checks/third-party.js';
import { discoverPlugins } from '../../../../core/plugins/discovery/discover.js';
import type { FoundPlugin } from '../../../../core/plugins/discovery/found.js';
import {
  judgeContent,
  refuseForeignWay,
  resolveTrusted,
  Untrusted,
} from '../../../../core/platform/files/ownership.js';
import { pluginFiles } from '../../../../core/plugins/discovery/plugin-files.js';
import { unlessRoot } from '../../../runner/skips.ts';

const NOBODY = 65_534;
/** Who is not root can give nothing away. */
const asRoot = { skip: unlessRoot };

const ISOLATIONS: readonly Isolation[] = ['own', 'shared', 'none'];

interface Room {
  readonly root: string;
  at(...parts: string[]): string;
  /** A plugin that leaves a mark when it is imported. */
  plugin(name: string, json?: object): Promise<void>;
  discover(
    enabled: readonly string[],
    dirs?: readonly string[],
    isolation?: Isolation,
  ): Promise<readonly FoundPlugin[]>;
  wasImported(name: string): boolean;
}

async function room(t: TestContext): Promise<Room> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'mountkeeper-owner-')));
  t.after(() => rm(root, { recursive: true, force: true }));
  const at = (...parts: string[]): string => path.join(root, ...parts);
  await mkdir(at('dirs'));
  return {
    root,
    at,
    async plugin(name, json = {}) {
      await mkdir(at('dirs', name, 'deep'), { recursive: true });
      await writeFile(
        at('dirs', name, 'package.json'),
        JSON.stringify({
          type: 'module',
          version: '1.2.3',
          description: 'Waters.',
          // For its mark.
          mountkeeper: { permissions: ['files'] },
          ...json,
        }),
      );
      await writeFile(at('dirs', name, 'deep', 'text.js'), "export const text = 'Waters.';");
      await writeFile(
        at('dirs', name, 'index.js'),
        `import { writeFileSync } from 'node:fs';
import { text } from './deep/text.js';
writeFileSync(${JSON.stringify(at(`imported-${name}`))}, '');
export default { name: '${name}', version: '1.2.3', apiVersion: 1, description: text, register() {} };`,
      );
    },
    discover: (enabled, dirs = [at('dirs')], isolation?: Isolation) =>
      discoverPlugins({
        ...(isolation && { isolation: new Map(enabled.map((name) => [name, isolation])) }),
        inTree: at('none'),
        thirdPartyDirs: dirs,
        stateDir: at('state'),
        enabled: new Set(enabled),
        log: pino({ level: 'silent' }),
        importMs: 20_000,
      }),
    wasImported: (name) => existsSync(at(`imported-${name}`)),
  };
}

async function assertRefused(place: Room, sentence: RegExp): Promise<void> {
  for (const isolation of ISOLATIONS) {
    const all = await place.discover(['garden'], undefined, isolation);
    const found = all.find((one) => one.name === 'garden');
    assert.match(found?.problem ?? 'it was taken', sentence, isolation);
    assert.equal(place.wasImported('garden'), false, isolation);
    assert.equal(existsSync(place.at('state/plugins/garden')), false);
    assert.equal(
      found?.guard,
      isolation === 'none',
      `only inside the daemon it may be a guard: ${isolation}`,
    );
  }
}

describe('a plugin that is off', () => {
  it('is not imported: its name, version and description come from its package.json', async (t) => {
    const place = await room(t);
    await place.plugin('garden', { description: 'As the package says.' });
    const [found] = await place.discover([]);
    assert.deepEqual(
      [found?.name, found?.version, found?.description, found?.plugin, found?.problem],
      ['garden', '1.2.3', 'As the package says.', undefined, undefined],
    );
    assert.equal(place.wasImported('garden'), false);
    await place.discover(['garden']);
    assert.equal(place.wasImported('garden'), true, 'and is, once it is on');
  });

  it('that belongs to somebody else says what will be in the way', asRoot, async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await chown(place.at('dirs/garden'), NOBODY, NOBODY);
    const [found] = await place.discover([]);
    assert.match(found?.problem ?? '', /garden belongs to user 65534, not to root, .* run: chown -R root/);
    assert.equal(found?.guard, false);
  });
});

describe('a plugin that is on is not imported when', () => {
  for (const [what, spoil, sentence] of [
    [
      'its folder belongs to somebody else',
      (at: Room['at']) => chown(at('dirs/garden'), NOBODY, NOBODY),
      /dirs\/garden belongs to user 65534.*chown -R root \S+dirs\/garden$/,
    ],
    [
      'a file in it does',
      (at: Room['at']) => chown(at('dirs/garden/deep/text.js'), NOBODY, NOBODY),
      /deep\/text\.js belongs to user 65534.*chown -R root \S+dirs\/garden$/,
    ],
    [
      'a link in it does',
      (at: Room['at']) =>
        symlink('deep', at('dirs/garden/link')).then(() => lchown(at('dirs/garden/link'), NOBODY, NOBODY)),
      /garden\/link belongs to user 65534/,
    ],
    [
      'a folder in it does',
      (at: Room['at']) => chown(at('dirs/garden/deep'), NOBODY, NOBODY),
      /garden\/deep belongs to user 65534/,
    ],
    [
      'the folder around it does',
      (at: Room['at']) => chown(at('dirs'), NOBODY, NOBODY),
      /dirs belongs to user 65534.*run: chown root \S+\/dirs$/,
    ],
    [
      'a folder further up does',
      (at: Room['at']) => chown(at('.'), NOBODY, NOBODY),
      /mountkeeper-owner-\w+ belongs to user 65534/,
    ],
    [
      'its package.json does',
      (at: Room['at']) => chown(at('dirs/garden/package.json'), NOBODY, NOBODY),
      /package\.json belongs to user 65534/,
    ],
  ] as const) {
    it(what, asRoot, async (t) => {
      const place = await room(t);
      await place.plugin('garden');
      await spoil(place.at);
      await assertRefused(place, sentence);
    });
  }

  for (const [what, file, mode, sentence] of [
    [
      'everybody may write its folder',
      'dirs/garden',
      0o777,
      /garden may be written by everybody.*chmod -R go-w \S+dirs\/garden$/,
    ],
    ['its group may', 'dirs/garden', 0o775, /garden may be written by its group/],
    [
      'everybody may write it, the sticky bit notwithstanding',
      'dirs/garden',
      0o1777,
      /garden may be written by everybody/,
    ],
    [
      'its group may write a file in it',
      'dirs/garden/deep/text.js',
      0o664,
      /deep\/text\.js may be written by its group/,
    ],
    ['everybody may write a folder further up', '.', 0o777, /may be written by everybody/],
  ] as const) {
    it(what, async (t) => {
      const place = await room(t);
      await place.plugin('garden');
      await chmod(place.at(file), mode);
      await assertRefused(place, sentence);
    });
  }

  it('a link of somebody else leads to it, however well kept it is', asRoot, async (t) => {
    const place = await room(t);
    await place.plugin('well-kept');
    await rename(place.at('dirs/well-kept'), place.at('well-kept'));
    await symlink(place.at('well-kept'), place.at('dirs/garden'));
    await lchown(place.at('dirs/garden'), NOBODY, NOBODY);
    await assertRefused(place, /dirs\/garden belongs to user 65534/);
  });

  it('a link of root leads to what belongs to somebody else', asRoot, async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await mkdir(place.at('home'));
    await rename(place.at('dirs/garden'), place.at('home/garden'));
    await chown(place.at('home'), NOBODY, NOBODY);
    await symlink('../home/garden', place.at('dirs/garden'));
    await assertRefused(place, /home belongs to user 65534/);
  });

  it('a link in it leads out to what everybody may write', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await writeFile(place.at('text.js'), "export const text = 'theirs';");
    await chmod(place.root, 0o755);
    await chmod(place.at('text.js'), 0o666);
    await rm(place.at('dirs/garden/deep/text.js'));
    await symlink('../../../text.js', place.at('dirs/garden/deep/text.js'));
    await assertRefused(place, /text\.js may be written by everybody/);
  });

  it('its copies could be swapped', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await mkdir(place.at('open'));
    await chmod(place.at('open'), 0o777);
    const [found] = await discoverPlugins({
      inTree: place.at('none'),
      thirdPartyDirs: [place.at('dirs')],
      stateDir: place.at('open/state'),
      enabled: new Set(['garden']),
      log: pino({ level: 'silent' }),
      importMs: 20_000,
    });
    assert.match(found?.problem ?? '', /open may be written by everybody/);
    await mkdir(place.at('state/plugins/node_modules'), { recursive: true });
    await chmod(place.at('state/plugins/node_modules'), 0o777);
    assert.match(
      (await place.discover(['garden']))[0]?.problem ?? '',
      /node_modules may be written by everybody/,
    );
    assert.equal(place.wasImported('garden'), false);
  });
});

describe('that a plugin lets people in', () => {
  const GUARD = { mountkeeper: { guard: true, permissions: ['files'] } };
  const guards = async (place: Room, isolation: Isolation): Promise<boolean | undefined> => {
    const all = await place.discover(['garden'], undefined, isolation);
    return all.find((one) => one.name === 'garden')?.guard;
  };

  it('is believed of a package.json that only root writes, wherever the plugin runs', async (t) => {
    const place = await room(t);
    await place.plugin('garden', GUARD);
    await chmod(place.at('dirs/garden/deep/text.js'), 0o666);
    for (const isolation of ISOLATIONS) assert.equal(await guards(place, isolation), true, isolation);
  });

  it('is not believed of one that somebody else may write, but where the file lets it run inside', async (t) => {
    const place = await room(t);
    await place.plugin('garden', GUARD);
    await chmod(place.at('dirs/garden'), 0o777);
    assert.equal(await guards(place, 'own'), false, 'there it could not have let anybody in');
    assert.equal(await guards(place, 'shared'), false);
    assert.equal(await guards(place, 'none'), true);
  });
});

describe('a plugin that is on is imported', () => {
  it("from below a folder where everybody may make folders and none may take away another's", async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await chmod(place.at('dirs'), 0o1777);
    const [found] = await place.discover(['garden']);
    assert.ok(found?.plugin, found?.problem);
  });

  it('with what its links lead out to, copied at their places, and links inside kept', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await mkdir(place.at('shared'));
    await writeFile(place.at('shared/text.js'), "export const text = 'Waters.';");
    await chmod(place.root, 0o1777);
    await rm(place.at('dirs/garden/deep'), { recursive: true });
    await symlink(place.at('shared'), place.at('dirs/garden/shared'));
    await symlink('shared', place.at('dirs/garden/deep'));
    const [found] = await place.discover(['garden']);
    assert.ok(found?.plugin && found.stagedFolder, found?.problem);
    await rm(place.at('shared'), { recursive: true });
    assert.equal(
      await readFile(path.join(found.stagedFolder, 'deep/text.js'), 'utf8'),
      "export const text = 'Waters.';",
    );
    assert.equal((await stat(path.join(found.stagedFolder, 'index.js'))).mode & 0o007, 0);
  });

  it('though another folder of its name comes first and cannot be trusted', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await mkdir(place.at('first/garden'), { recursive: true });
    await chmod(place.at('first'), 0o1777);
    await chmod(place.at('first/garden'), 0o777);
    const found = await place.discover(['garden'], [place.at('first'), place.at('dirs')]);
    assert.ok(found.find((one) => one.name === 'garden')?.plugin);
    assert.equal(found.length, 2);
  });
});

describe('a folder of plugins that everybody may write', () => {
  it('is refused as a whole, by name, and nothing in it is looked at', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await place.plugin('pond');
    await chmod(place.at('dirs'), 0o777);
    for (const isolation of ISOLATIONS)
      assert.deepEqual(
        (await place.discover(['garden'], undefined, isolation)).map(({ name, guard }) => [name, guard]),
        [
          [place.at('dirs'), false],
          ['garden', isolation === 'none'],
        ],
        isolation,
      );
    const found = await place.discover(['garden']);
    for (const { problem } of found)
      assert.match(problem ?? '', /dirs may be written by everybody, .*run: chmod go-w \S+dirs$/);
    assert.equal(place.wasImported('garden'), false);
  });

  it('is read though sticky for 200 folders at the most, those that are on first', asRoot, async (t) => {
    const place = await room(t);
    await place.plugin('zebra');
    await chmod(place.at('dirs'), 0o1777);
    for (let index = 0; index < 250; index += 1) {
      await mkdir(place.at(`dirs/a${String(index)}`));
      await chown(place.at(`dirs/a${String(index)}`), NOBODY, NOBODY);
    }
    const found = await place.discover(['zebra']);
    assert.equal(found.length, 200);
    assert.ok(found.find((one) => one.name === 'zebra')?.plugin);
  });
});

describe('the files of a plugin', () => {
  it('are those that were judged, though names are swapped meanwhile', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    const files = pluginFiles(place.at('dirs/garden'));
    const texts = new Map<string, string>();
    for await (const { name, kind, content } of files) {
      if (kind === 'file') texts.set(name, content.toString());
      if (name !== 'deep') continue;
      await rename(place.at('dirs/garden'), place.at('dirs/away'));
      await mkdir(place.at('dirs/garden/deep'), { recursive: true });
      await writeFile(place.at('dirs/garden/deep/text.js'), 'evil');
      await writeFile(place.at('dirs/garden/index.js'), 'evil');
    }
    assert.deepEqual([...texts.keys()], ['deep/text.js', 'index.js', 'package.json']);
    assert.deepEqual(
      [...texts.values()].filter((text) => text.includes('evil')),
      [],
    );
  });

  it('are no pipes, which would keep the reader for ever, and no endless links', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await promisify(execFile)('mkfifo', [place.at('dirs/garden/pipe')]);
    const walk = async (): Promise<void> => {
      for await (const file of pluginFiles(place.at('dirs/garden'))) assert.ok(file.name);
    };
    await assert.rejects(walk(), /pipe is neither a file nor a folder/);
    await rm(place.at('dirs/garden/pipe'));
    await symlink(place.at('dirs/garden'), place.at('dirs/garden/again'));
    await assert.rejects(walk(), /deeper than 64 folders/);
    await rm(place.at('dirs/garden/again'));
    await symlink('/nowhere/at/all', place.at('dirs/garden/lost'));
    await assert.rejects(walk(), /the link \S+lost leads to \/nowhere\/at\/all, which is not there/);
  });

  it('are, outside of its folder, only what everybody may read anyway', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    const link = place.at('dirs/garden/link');
    const taken = async (target: string): Promise<readonly string[]> => {
      await rm(link, { force: true });
      await symlink(target, link);
      const names: string[] = [];
      for await (const { name, kind } of pluginFiles(place.at('dirs/garden'))) names.push(`${name} ${kind}`);
      return names.filter((name) => name.startsWith('link'));
    };
    await mkdir(place.at('home/open'), { recursive: true });
    await writeFile(place.at('home/open/secret'), 'of root', { mode: 0o600 });
    await writeFile(place.at('home/open/text'), 'for all', { mode: 0o644 });
    const privately =
      /the link \S+link leads out of the plugin's folder to \S+, which not everybody may read; copy/;
    // Not everybody comes to it: the folder above is shut.
    await assert.rejects(taken(place.at('home/open/text')), privately);
    await chmod(place.root, 0o755);
    assert.deepEqual(await taken(place.at('home/open/text')), ['link file']);
    for (const secret of ['home/open/secret', 'home/open'])
      await assert.rejects(taken(place.at(secret)), privately);
    await rm(place.at('home/open/secret'));
    assert.deepEqual(await taken(place.at('home/open')), ['link folder', 'link/text file']);
    await chmod(place.at('home'), 0o700);
    await assert.rejects(taken(place.at('home/open')), privately);
    // By its letters it stays inside: it goes round through a link to the folder itself.
    await writeFile(place.at('secret'), 'of root', { mode: 0o600 });
    await symlink('.', place.at('dirs/garden/a'));
    await assert.rejects(taken('a/a/a/../../secret'), privately);
    assert.deepEqual(await taken('a/a/deep/text.js'), ['link link']);
    assert.deepEqual(await taken('a/nothing'), []);
    await chmod(place.at('dirs/garden/deep/text.js'), 0o600);
    assert.deepEqual(await taken(place.at('dirs/garden/deep/text.js')), ['link file']);
  });

  it('are a package that npm has linked, wherever its author keeps it, without what is secret in it', async (t) => {
    const place = await room(t);
    await place.plugin('garden');
    await mkdir(place.at('home/seeds/lib'), { recursive: true });
    await chmod(place.at('home'), 0o700);
    await writeFile(place.at('home/seeds/package.json'), '{ "name": "@friend/seeds" }');
    await writeFile(place.at('home/seeds/lib/index.js'), '');
    await mkdir(place.at('dirs/garden/node_modules/@friend'), { recursive: true });
    const taken = async (): Promise<readonly string[]> => {
      const names: string[] = [];
      for await (const { name, kind } of pluginFiles(place.at('dirs/garden')))
        if (name.includes('/seeds') && kind === 'file') names.push(path.basename(name));
      return names;
    };
    const link = place.at('dirs/garden/node_modules/@friend/seeds');
    await symlink(place.at('home/seeds'), link);
    assert.deepEqual(await taken(), ['index.js', 'package.json']);
    await writeFile(place.at('home/seeds/.env'), 'PASSWORD', { mode: 0o600 });
    await assert.rejects(taken(), /\.env, which not everybody may read/);
    await rm(place.at('home/seeds/.env'));
    await rm(link);
    await symlink(place.at('home'), link);
    await assert.rejects(taken(), /home, which not everybody may read/);
  });

  it('are followed through links as the kernel does, parents of links included', async (t) => {
    const place = await room(t);
    await mkdir(place.at('a/b'), { recursive: true });
    await writeFile(place.at('a/end'), '');
    await symlink('a/b', place.at('link'));
    assert.equal(await resolveTrusted(`${place.at('link')}/../end`), place.at('a/end'));
    await symlink('loop', place.at('loop'));
    await assert.rejects(resolveTrusted(place.at('loop')), /more than 40 links/);
  });

  it("may belong to root or to the daemon's user", () => {
    judgeContent('/x', { uid: 0, mode: 0o644 });
    judgeContent('/x', { uid: process.geteuid?.() ?? 0, mode: 0o755 });
    assert.throws(() => judgeContent('/x', { uid: NOBODY - 1, mode: 0o644 }), Untrusted);
  });
});

describe('a folder in which root is to work', asRoot, () => {
  it('may lie only where nobody else can rename anything on the way, by links as well', async (t) => {
    const { at } = await room(t);
    const refused = (folder: string): Promise<void> =>
      assert.rejects(refuseForeignWay(folder, 'do this'), /^Error: .*; do this$/);
    for (const folder of ['ours/in', 'theirs/in', 'open/in', 'sticky/in'])
      await mkdir(at(folder), { recursive: true });
    await chown(at('theirs'), NOBODY, NOBODY);
    await chmod(at('open'), 0o777);
    await chmod(at('sticky'), 0o1777);
    for (const folder of ['ours/in', 'ours/in/missing', 'sticky/in', 'sticky/missing'])
      await refuseForeignWay(at(folder), 'do this');
    for (const folder of ['theirs', 'theirs/in', 'theirs/in/missing', 'open/in', 'open/missing'])
      await refused(at(folder));
    await symlink(at('ours/in'), at('sticky/link'));
    await refuseForeignWay(at('sticky/link'), 'do this');
    await lchown(at('sticky/link'), NOBODY, NOBODY);
    await refused(at('sticky/link'));
    await symlink(at('theirs/in'), at('ours/link'));
    await refused(at('ours/link'));
    await chown(at('sticky/in'), NOBODY, NOBODY);
    await refused(at('sticky/in'));
  });
});
