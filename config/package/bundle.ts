/**
 * What the daemon's own process reads at its start, in about a hundred files instead of a thousand: half of a start was
 * reading modules. The core, the plugins of this tree and the packages that they use are bundled; each plugin keeps its
 * entry and what it loads late, in its own folder. All other files stay as they are: helpers' processes run from them,
 * and assets, locales and workers are found beside the module that names them, as before. docs/decisions/0039 says why.
 */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import type { OutputChunk, Plugin } from 'rolldown';
import { PACKAGE_DIR } from '../../core/platform/package.ts';

const DIST = join(PACKAGE_DIR, 'dist');
/** `mountkeeper`, as the daemon and whatever it loads in its own process import it. */
const ENTRANCE = 'core/sdk/entrance.js';
/** Processes that read the core whole, and what authors import from the package. */
const ENTRIES = [
  'core/main.js',
  ENTRANCE,
  'core/testing/index.js',
  'core/plugins/discovery/preflight-child.js',
];
/** `mountkeeper/sdk` and what it imports stay files: helpers' processes read no more than these. */
const FILES = 'core/sdk/standalone.js';
/** They find files of their own beside their code; the licence of the last one wants it to be replaceable. */
const PACKAGES_LEFT = ['bree', '@swc/wasm-typescript', 'openpgp'];
/** Stands for the way from a chunk to `dist/`, which is known when the chunk has its place. */
const WAY = '@@DIST@@/';

/** Writes it over the copy of `dist/` at `target`. Rejects where a plugin's code would lie outside its folder. */
export async function bundle(target: string): Promise<void> {
  const entries = [...ENTRIES, ...(await pluginEntries())];
  const build = await rolldown({
    input: Object.fromEntries(entries.map((path) => [path.replace(/\.js$/, ''), join(DIST, path)])),
    cwd: PACKAGE_DIR,
    platform: 'node',
    external: PACKAGES_LEFT,
    // There it reads many small files in one go.
    transform: { define: { 'process.features.require_module': 'false' } },
    plugins: [places(await closureOf(join(DIST, FILES)))],
    // No line becomes another one in `places`.
    checks: { sourcemapBroken: false },
  });
  try {
    const { output } = await build.generate({
      dir: DIST,
      format: 'esm',
      entryFileNames: '[name].js',
      hashCharacters: 'hex',
      chunkFileNames: ({ moduleIds }) => `${folderOf(moduleIds)}/chunks/[name]-[hash].js`,
      sourcemap: 'hidden',
    });
    for (const part of output) if (part.type === 'chunk') await write(join(target, part.fileName), part);
  } finally {
    await build.close();
  }
}

/** The map is for stacks in the log (core/platform/log/source-places.ts): it leads to the modules, which stay. */
async function write(file: string, { code, map }: Pick<OutputChunk, 'code' | 'map'>): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, code);
  if (map === null) return;
  const { version, sources, mappings } = map;
  await writeFile(`${file}.map`, JSON.stringify({ version, sources, names: [], mappings }));
}

async function pluginEntries(): Promise<readonly string[]> {
  const names = (await readdir(join(DIST, 'plugins'))).sort();
  return names.map((name) => `plugins/${name}/index.js`).filter((path) => existsSync(join(DIST, path)));
}

/** The plugin whose modules these are, else the core: an error is assigned to a plugin by the folder of its code. */
function folderOf(modules: readonly string[]): string {
  const ours = modules.filter((file) => file.startsWith(`${DIST}/`)).map((file) => relative(DIST, file));
  const [owner = 'core', ...others] = new Set(ours.map((file) => /^core|^plugins\/[^/]+/.exec(file)?.[0]));
  if (others.length > 0) throw new Error(`modules of several owners would be one file: ${ours.join(', ')}`);
  return owner;
}

/** Modules that stay files are imported as files, and each module looks for others beside the file that it was. */
function places(files: ReadonlySet<string>): Plugin {
  return {
    name: 'places',
    async resolveId(source, importer, options) {
      const found = await this.resolve(source, importer, { ...options, skipSelf: true });
      if (found === null || !files.has(found.id)) return found;
      return { id: WAY + relative(DIST, found.id), external: true };
    },
    transform(code, id) {
      if (!id.startsWith(`${DIST}/`) || !code.includes('import.meta.url')) return null;
      const own = `new URL('${WAY}${relative(DIST, id)}', import.meta.url).href`;
      return { code: code.replaceAll('import.meta.url', own) };
    },
    renderChunk(code, { fileName }) {
      return {
        code: code.replace(/^#!.*/, '').replaceAll(WAY, `${relative(dirname(fileName), '.') || '.'}/`),
      };
    },
  };
}

/** The module and all that it imports by relative paths. */
async function closureOf(file: string, found = new Set<string>()): Promise<ReadonlySet<string>> {
  if (found.has(file)) return found;
  found.add(file);
  const imports = (await readFile(file, 'utf8')).matchAll(/\b(?:from|import) '(\.[^']+)'/g);
  for (const [, path = ''] of imports) await closureOf(join(dirname(file), path), found);
  return found;
}
