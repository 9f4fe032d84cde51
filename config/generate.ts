/** Writes the generated files, or with `--check` says which of them are out of date and exits with 1. */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { discoverPlugins } from '../core/plugins/discovery/discover.ts';
import { OWN_COMMANDS } from '../core/cli/usage.ts';
import { enabledByDefault, entryOf } from '../core/plugins/discovery/found.ts';
import { completionFiles } from './completions.ts';
import { configKeys, generatedFiles } from './generated-files.ts';
import { manualPages } from './man-pages.ts';
import { nativeRoutes } from './native-routes.ts';
import { contractPage } from './contract-page.ts';
import { pluginPages } from './plugin-pages.ts';

const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));
const IMPORT_TIMEOUT_MS = 10_000;

async function inTreeFiles(): Promise<ReadonlyMap<string, string>> {
  const found = await discoverPlugins({
    inTree: join(PACKAGE, 'dist/plugins'),
    thirdPartyDirs: [],
    stateDir: '',
    log: pino({ level: 'silent' }),
    importMs: IMPORT_TIMEOUT_MS,
  });
  const broken = found.filter((plugin) => plugin.plugin === undefined);
  if (broken.length > 0)
    throw new Error(broken.map((plugin) => `plugin ${plugin.name}: ${plugin.problem}`).join('; '));
  const plugins = found.filter((plugin) => plugin.plugin !== undefined);
  const files = await contractFiles();
  const contract = files.get('hooks.ts') ?? '';
  const entries = plugins.flatMap((plugin) => entryOf(plugin));
  const commands = [...OWN_COMMANDS, ...plugins.filter(enabledByDefault).flatMap(({ ledger }) => ledger.cli)];
  return new Map([
    ...generatedFiles(entries),
    ...pluginPages({ plugins, native: await nativeRoutes(plugins), ownCommands: OWN_COMMANDS, contract }),
    ['docs/reference/contract.md', contractPage({ plugins, files })] as const,
    ...completionFiles(commands),
    ...manualPages({ commands, keys: configKeys(entries) }),
  ]);
}

async function contractFiles(): Promise<ReadonlyMap<string, string>> {
  const folder = join(PACKAGE, 'core/contract');
  const names = (await readdir(folder)).sort();
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)),
  );
}

async function outdated(files: ReadonlyMap<string, string>): Promise<string[]> {
  const current = await Promise.all(
    [...files].map(
      async ([path, text]) => (await readFile(join(PACKAGE, path), 'utf8').catch(() => '')) === text,
    ),
  );
  return [...files.keys()].filter((_, index) => current[index] === false);
}

const files = await inTreeFiles();
const stale = await outdated(files);
if (process.argv.includes('--check')) {
  for (const path of stale) console.error(`${path} is out of date; run "npm run docs"`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const path of stale) {
    await mkdir(dirname(join(PACKAGE, path)), { recursive: true });
    await writeFile(join(PACKAGE, path), files.get(path) ?? '');
    console.log(`wrote ${path}`);
  }
}
