import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { discoverPlugins } from '../../../../core/plugins/discovery/discover.ts';
import type { FoundPlugin } from '../../../../core/plugins/discovery/found.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

/** Types of every kind that leave nothing behind, before the line that matters. */
const ENTRY = `import { definePlugin, Joi } from 'mountkeeper';
import { greeting } from './words/greeting.ts';
import type { Tone } from './words/greeting.ts';

interface Settings {
  readonly tone: Tone;
}
const settings: Settings = { tone: 'loud' } satisfies Settings;

export default definePlugin({
  name: 'lamp', version: '1.2.3', apiVersion: 1, description: greeting<string>(settings.tone as Tone)!,
  register(ctx): void { ctx.tap('afterMount', (share: string): void => { void share; }); },
});
`;
const GREETING = `export type Tone = 'loud' | 'low';
export function greeting<T>(tone: Tone): T {
  return \`hello, \${tone}\` as T;
}
`;

const PLACES = [
  [false, 'in the daemon'],
  [true, 'in a process of its own'],
] as const;

interface Lamp {
  readonly source: string;
  readonly stateDir: string;
  write(file: string, text: string): Promise<void>;
  found(isolated?: boolean): Promise<FoundPlugin>;
}

async function lamp(t: TestContext): Promise<Lamp> {
  const root = await mkdtemp(path.join(tmpdir(), 'mountkeeper-types-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const [source, stateDir] = [path.join(root, 'third/lamp'), path.join(root, 'state')];
  const write = async (file: string, text: string): Promise<void> => {
    await mkdir(path.dirname(path.join(source, file)), { recursive: true });
    await writeFile(path.join(source, file), text);
  };
  await mkdir(path.join(root, 'tree'));
  await write('package.json', JSON.stringify({ name: 'lamp', type: 'module', exports: './index.ts' }));
  await write('index.ts', ENTRY);
  await write('words/greeting.ts', GREETING);
  return {
    source,
    stateDir,
    write,
    async found(isolated = false) {
      const [one] = await discoverPlugins({
        inTree: path.join(root, 'tree'),
        thirdPartyDirs: [path.dirname(source)],
        stateDir,
        enabled: new Set(['lamp']),
        isolation: new Map(isolated ? [] : [['lamp', 'none']]),
        log: collectLog().log,
        importMs: 20_000,
      });
      assert.ok(one);
      return one;
    },
  };
}

function problemOf(found: FoundPlugin): string {
  return found.plugin === undefined ? (found.problem ?? '') : '';
}

describe('a plugin in TypeScript', () => {
  for (const [isolated, where] of PLACES)
    it(`is loaded without a build, ${where}`, async (t) => {
      const { found } = await lamp(t);
      const one = await found(isolated);
      assert.equal(problemOf(one), '');
      assert.equal(one.description, 'hello, loud');
    });

  it('keeps its sources as they are; the copy that is loaded has blanks for types, line for line', async (t) => {
    const { found, source, stateDir } = await lamp(t);
    await found();
    assert.equal(await readFile(path.join(source, 'words/greeting.ts'), 'utf8'), GREETING);
    const copies = await readdir(path.join(stateDir, 'plugins'));
    const copy = copies.find((name) => name.startsWith('lamp@')) ?? '';
    const loaded = await readFile(path.join(stateDir, 'plugins', copy, 'words/greeting.ts'), 'utf8');
    assert.deepEqual(
      loaded.split('\n').map((line) => line.length),
      GREETING.split('\n').map((line) => line.length),
    );
    assert.doesNotMatch(loaded, /Tone/);
  });

  for (const [isolated, where] of PLACES)
    it(`is refused with file and line of its source, ${where}`, async (t) => {
      const { found, write, source } = await lamp(t);
      await write('words/greeting.ts', `${GREETING}\nthrow new Error('too dark' as string);\n`);
      const thrown = problemOf(await found(isolated));
      assert.match(thrown, /too dark/);
      // From a process of its own by its place in the plugin.
      assert.ok(thrown.includes('words/greeting.ts:6'), thrown);
      await write('words/greeting.ts', `${GREETING}\n\nexport enum Shade { red }\n`);
      const unknown = problemOf(await found(isolated));
      assert.match(unknown, /enum is not supported in strip-only mode/);
      assert.ok(unknown.includes(`${source}/words/greeting.ts:7`), unknown);
    });

  it('may have declarations beside, and packages of its own with sources', async (t) => {
    const { found, write } = await lamp(t);
    await write('words/index.d.ts', 'declare const nothing: 1;\n');
    await write('node_modules/shades/index.ts', 'export enum Shade { red }\n');
    assert.equal(problemOf(await found()), '');
  });
});
