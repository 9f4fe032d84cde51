/**
 * The rooms of the house: who may import whom, types included. The order stands in docs/architecture.md, too.
 */
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * From the ground floor up. A room imports from those before it, and from itself; rooms of one line know
 * nothing of each other.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['core/contract'],
  ['core/platform'],
  ['core/status.ts', 'core/commands.ts'],
  ['core/sdk'],
  ['core/config'],
  ['core/plugins'],
  ['core/http', 'core/bandwidth'],
  ['core/shares', 'core/testing'],
  ['core/parts.ts', 'core/reload-file.ts', 'core/daemon.ts', 'core/cli', 'core/main.ts'],
];
const TOP = FLOORS.length - 1;
/** Most files at the core's root, of which `tsconfig.json` is one. */
const MOST_AT_ROOT = 8;
const MOST_IN_FOLDER = 18;
/** What tools leave among the sources. */
const GENERATED: readonly string[] = ['node_modules', 'dist', '.cache'];

interface Import {
  readonly from: string;
  readonly to: string;
}

async function sourcesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(join(PROJECT, folder), { recursive: true });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`);
}

/** Folders two floors below `place` with sources or other files of ours in them: others are left, or generated. */
async function roomsIn(place: string): Promise<readonly string[]> {
  const files = await readdir(join(PROJECT, place), { recursive: true, withFileTypes: true });
  const folders = files
    .filter((entry) => entry.isFile())
    .map((entry) => posix.relative(join(PROJECT, place), entry.parentPath).split('/'))
    .filter((parts) => parts.length > 1 && !parts.some((part) => GENERATED.includes(part)));
  return [...new Set(folders.map((parts) => [place, ...parts.slice(0, 2)].join('/')))].sort();
}

/** Text of the rows of the tables that begin with `room`, and of those below it that name none. */
function rowsOf(page: string, room: string): string {
  let isIn = false;
  const rows = page.split('\n').filter((line) => {
    const [, first = ''] = /^\|([^|]*)\|/.exec(line) ?? [];
    if (first.trim() !== '' || !line.startsWith('|')) isIn = first.trim() === `\`${room}\``;
    return isIn;
  });
  return rows.join('\n');
}

/** Imports by a relative path: of values, of types, when asked for, and of types in place. */
export function importsIn(file: string, text: string): readonly Import[] {
  const found = text.matchAll(/(?:\bfrom |\bimport |\bimport\()\s*'(\.{1,2}\/[^']+)'/g);
  return [...found].map(([, path = '']) => ({
    from: file,
    to: posix.normalize(posix.join(dirname(file), path)),
  }));
}

/** Whether values of node:http are imported: from Node.js 22 on, that loads the fetch() of Node.js as well. */
function importsHttp(text: string): boolean {
  return /^import (?!type )[^;]*from '(?:node:)?http'|\bimport\('(?:node:)?http'\)/m.test(text);
}

async function importsOf(folder: string): Promise<readonly Import[]> {
  const files = await sourcesIn(folder);
  const found = await Promise.all(
    files.map(async (file) => importsIn(file, await readFile(join(PROJECT, file), 'utf8'))),
  );
  return found.flat();
}

function floorOf(file: string): { readonly room: string; readonly floor: number } | undefined {
  const floor = FLOORS.findIndex((rooms) =>
    rooms.some((room) => file === room || file.startsWith(`${room}/`)),
  );
  const room = FLOORS[floor]?.find((name) => file === name || file.startsWith(`${name}/`));
  return room === undefined ? undefined : { room, floor };
}

/** Why a file of the core may not import another; undefined when it may. */
function upward({ from, to }: Import): string | undefined {
  const [own, other] = [floorOf(from), floorOf(to)];
  if (!own || !other) return `${from} uses ${to}: not both are in a room`;
  const isBelow =
    other.floor < own.floor || other.room === own.room || (own.floor === TOP && other.floor === TOP);
  return isBelow ? undefined : `${from} uses ${to}`;
}

/** Files that import each other in a circle, by any way; empty when there is none. */
export function circleIn(imports: readonly Import[]): readonly string[] {
  const known = new Map<string, string[]>();
  for (const { from, to } of imports) known.set(from, [...(known.get(from) ?? []), to]);
  const done = new Set<string>();
  const way: string[] = [];
  const visit = (file: string): readonly string[] => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return [];
    way.push(file);
    for (const next of known.get(file) ?? []) {
      const circle = visit(next);
      if (circle.length > 0) return circle;
    }
    way.pop();
    done.add(file);
    return [];
  };
  for (const file of known.keys()) {
    const circle = visit(file);
    if (circle.length > 0) return circle;
  }
  return [];
}

describe('the rooms of the house', () => {
  it('of the core import downwards only', async () => {
    assert.equal(upward({ from: 'core/sdk/units.ts', to: 'core/contract/config.ts' }), undefined);
    assert.ok(upward({ from: 'core/contract/config.ts', to: 'core/sdk/units.ts' }));
    assert.ok(upward({ from: 'core/http/http.ts', to: 'core/bandwidth/budget.ts' }), 'rooms of one floor');
    const imports = await importsOf('core');
    assert.ok(imports.length > 500, 'imports are found at all');
    assert.deepEqual(
      imports.map(upward).filter((problem) => problem !== undefined),
      [],
    );
  });

  it('of the core import nothing of a plugin', async () => {
    assert.deepEqual(
      (await importsOf('core')).filter(({ to }) => !to.startsWith('core/')),
      [],
    );
  });

  it('of plugins stay among themselves', async () => {
    const leaves = ({ from, to }: Import): boolean =>
      !to.startsWith(`${from.split('/').slice(0, 2).join('/')}/`);
    assert.ok(leaves({ from: 'plugins/a/room/b.ts', to: 'plugins/other/b.ts' }));
    assert.ok(leaves({ from: 'plugins/a/b.ts', to: 'core/sdk/index.ts' }));
    const imports = await importsOf('plugins');
    assert.ok(imports.length > 500, 'imports are found at all');
    assert.deepEqual(imports.filter(leaves), []);
  });

  it('ask Node.js for node:http instead of importing it', async () => {
    const files = (await Promise.all(['core', 'plugins'].map(sourcesIn))).flat();
    const importing = await Promise.all(
      files.map(async (file) => (importsHttp(await readFile(join(PROJECT, file), 'utf8')) ? [file] : [])),
    );
    assert.deepEqual(importing.flat(), []);
    assert.ok(importsHttp("import { Server } from 'node:http';") && importsHttp("import('http')"));
    assert.ok(importsHttp("import { request as plain,\n  Server } from 'node:http';"));
    assert.ok(!importsHttp("import type { Server } from 'node:http';\nimport { get } from 'node:https';"));
  });

  it('have no circle of imports', async () => {
    assert.deepEqual(
      circleIn([
        { from: 'a', to: 'b' },
        { from: 'b', to: 'c' },
        { from: 'c', to: 'b' },
      ]),
      ['b', 'c', 'b'],
    );
    for (const folder of ['core', 'plugins', 'config'])
      assert.deepEqual(circleIn(await importsOf(folder)), []);
  });

  it('are not crowded', async () => {
    assert.ok(
      (await readdir(join(PROJECT, 'core'), { withFileTypes: true })).filter((entry) => entry.isFile())
        .length <= MOST_AT_ROOT,
    );
    const counts = new Map<string, number>();
    for (const file of [...(await sourcesIn('core')), ...(await sourcesIn('plugins'))])
      counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    assert.deepEqual(
      [...counts].filter(([, count]) => count > MOST_IN_FOLDER),
      [],
    );
  });

  it('have a line in the table of docs/architecture.md, in their order', async () => {
    const page = await readFile(join(PROJECT, 'docs/architecture.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `(core\/[\w./-]+?)\/?`/gm)].map(([, room = '']) => room);
    const rooms = FLOORS.flat().filter((room) => !room.endsWith('.ts'));
    assert.deepEqual(
      rows.filter((row) => rooms.includes(row)),
      rooms,
    );
  });

  it('of the second floor are named in docs/architecture.md, each where its own room is', async () => {
    const page = await readFile(join(PROJECT, 'docs/architecture.md'), 'utf8');
    const everywhere = /^In every plugin:.*$/m.exec(page)?.[0] ?? '';
    const below = [...(await roomsIn('core')), ...(await roomsIn('plugins'))];
    assert.ok(below.length > 60);
    assert.deepEqual(
      below.filter((path) => {
        const [place = '', room = '', folder = ''] = path.split('/');
        const rows = rowsOf(page, place === 'core' ? `core/${room}/` : room);
        return ![rows, place === 'plugins' ? everywhere : ''].some((text) => text.includes(`\`${folder}/\``));
      }),
      [],
    );
  });

  it('and every file that docs/architecture.md names is there', async () => {
    const page = await readFile(join(PROJECT, 'docs/architecture.md'), 'utf8');
    const named = [...page.matchAll(/`((?:core|plugins|test|config)\/[\w./-]+\.ts)`/g)].map(
      ([, path = '']) => path,
    );
    assert.ok(named.length > 30);
    const present = new Set((await Promise.all(['core', 'plugins', 'test', 'config'].map(sourcesIn))).flat());
    assert.deepEqual(
      named.filter((path) => !present.has(path)),
      [],
    );
  });
});
