/** What a plugin's author does with an installed Mountkeeper, as its command prints it. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from '../../runner/test-files.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { run } from './build-packages.ts';

const ONE_STEP_MS = 180_000;

/**
 * Makes a plugin in TypeScript by `program`, follows the lines that this prints, and has the compiler check it,
 * strictly and with all that it reads of the installed package, the types of every plugin among it. Nothing is
 * fetched: compiler and types of Node are this checkout's.
 */
export async function assertAuthorCanWork(scratch: Scratch, name: string, program: string): Promise<void> {
  const folder = scratch.path(`author-${name}`);
  await mkdir(folder);
  const [bin, home] = [scratch.path(`author-${name}-bin`), scratch.path(`author-${name}-home`)];
  for (const one of [bin, home]) await mkdir(one);
  await writeFile(join(bin, 'mountkeeper'), `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    LANG: 'C.UTF-8',
    npm_config_offline: 'true',
    npm_config_audit: 'false',
  };
  const type = async (line: string, cwd: string): Promise<string> =>
    (await run('sh', ['-euc', line], { cwd, env, timeout: ONE_STEP_MS })).stdout;
  const printed = (await type('mountkeeper plugin new lights --ts', folder))
    .split('\n')
    .filter((line) => line.startsWith('  '))
    .join('\n');
  const local = ['typescript', '@types/node'].map((one) => ` ${PROJECT}node_modules/${one}`).join('');
  const said = await type(printed.replace(' typescript @types/node', local), folder);
  assert.match(said, /lights is fine/);
  assert.match(said, /^# fail 0$/m);
  const lights = join(folder, 'lights');
  await writeFile(join(lights, 'all.ts'), await everyEntrance());
  const errors = await type('npx tsc', lights).catch((error: { stdout?: string }) => error.stdout ?? error);
  assert.equal(errors, '', 'the compiler has something to say');
  // The types are there, and not `any`.
  await writeFile(
    join(lights, 'wrong.ts'),
    "import { Joi } from 'mountkeeper';\nimport type { PluginContext } from 'mountkeeper';\n" +
      "Joi.strnig();\nexport const tap = (ctx: PluginContext) => ctx.tap('afterMuont', () => {});\n",
  );
  await assert.rejects(type('npx tsc', lights), (error: { stdout?: string }) => {
    assert.match(error.stdout ?? '', /wrong\.ts\(3,\d+\): error TS2551: .*strnig/);
    assert.match(error.stdout ?? '', /wrong\.ts\(4,\d+\): error TS\d+: .*afterMuont/);
    return true;
  });
}

/** Imports what `exports` of the package has, and the types of each plugin that has any. */
async function everyEntrance(): Promise<string> {
  const files = await readdir(`${PROJECT}dist/plugins`, { recursive: true });
  const plugins = files
    .filter((path) => /^[^/]+\/index\.d\.ts$/.test(path))
    .map((path) => path.split('/')[0] ?? '');
  assert.ok(plugins.length > 20);
  return [
    ...plugins.map((plugin) => `import type {} from 'mountkeeper/plugins/${plugin}';`),
    "import * as sdk from 'mountkeeper/sdk';",
    "import * as testing from 'mountkeeper/testing';",
    'export const all = [sdk, testing];',
  ].join('\n');
}
