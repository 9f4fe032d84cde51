/**
 * Which files go where: what `npm pack` would publish, the packages that it depends on, and what Debian wants
 * beside them.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_DIR } from '../../core/platform/package.ts';
import { isDeclaration, typedPackages } from './declarations.ts';

export const LIB = 'usr/lib/mountkeeper';
export const DOC = 'usr/share/doc/mountkeeper';

/** Target path, without a slash before it → file to copy. */
export type Contents = Map<string, string>;

const run = promisify(execFile);

/** What is published, but for what only builds, shows or explains. */
const LEFT_OUT = [/\.map$/, /^dist\/config\//, /^config\/(?!example\.toml$|default\.toml$)/];
const DOCUMENTS = /^(?:docs\/|CHANGELOG\.md$|README\.md$|SECURITY\.md$|plugins\/[^/]+\/README\.md$)/;
/** Of dependencies: nothing of it is ever loaded. */
const DEPENDENCY_LEFT_OUT =
  /\.map$|\.html$|(?:^|\/)(?:docs|\.github|\.vscode|tests?|benchmarks?|examples?)\/|(?:^|\/)\.[^/]+$|\.md$/i;

/** Nor these; declarations among them are read by an author's compiler. */
const SOURCE = /\.[cm]?ts$/;

/** openpgp brings its code seven times, for browsers and in pieces; what Node.js imports is one of them. */
const OTHER_BUILDS = /^openpgp\/(?:dist\/(?!node\/openpgp\.mjs$)|lightweight\/)/;

export async function contents(): Promise<Contents> {
  const files: Contents = new Map();
  const published = await publishedFiles();
  for (const path of published) {
    if (LEFT_OUT.some((pattern) => pattern.test(path)) || path === 'LICENSE') continue;
    files.set(`${DOCUMENTS.test(path) ? DOC : LIB}/${path}`, join(PACKAGE_DIR, path));
  }
  const packages = await productionPackages();
  const typed = await typedPackages(published, packages);
  for (const folder of packages) await addFolder(files, folder, typed.has(folder));
  const own: readonly (readonly [string, string])[] = [
    ['usr/bin/mountkeeper', 'debian/mountkeeper.sh'],
    ['usr/lib/sysusers.d/mountkeeper.conf', 'debian/sysusers.conf'],
    ['usr/lib/tmpfiles.d/mountkeeper.conf', 'debian/tmpfiles.conf'],
    ['usr/share/mountkeeper/mountkeeper.toml', 'debian/mountkeeper.toml'],
    [`${DOC}/README.Debian`, 'debian/README.Debian'],
    [`${DOC}/copyright`, 'debian/copyright'],
    ['usr/share/lintian/overrides/mountkeeper', 'debian/lintian-overrides'],
    ['usr/share/bash-completion/completions/mountkeeper', 'completions/mountkeeper.bash'],
    ['usr/share/zsh/vendor-completions/_mountkeeper', 'completions/_mountkeeper'],
    ['usr/share/fish/vendor_completions.d/mountkeeper.fish', 'completions/mountkeeper.fish'],
    ...['prometheus.yml', 'alerts.yml', 'alerts.test.yml', 'grafana-dashboard.json'].map(
      (name) => [`usr/share/mountkeeper/monitoring/${name}`, `monitoring/${name}`] as const,
    ),
  ];
  for (const [target, source] of own) files.set(target, join(PACKAGE_DIR, 'config', source));
  return files;
}

/** By npm itself, so that the Debian package and npm's have the same. */
async function publishedFiles(): Promise<readonly string[]> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const { stdout } = await run('npm', args, { cwd: PACKAGE_DIR, maxBuffer: 64 * 1024 * 1024 });
  const [packed] = Object.values(
    JSON.parse(stdout) as Record<string, { readonly files: readonly { readonly path: string }[] }>,
  );
  if (packed === undefined) throw new Error('npm pack names no files');
  return packed.files.map(({ path }) => path);
}

/** Folders in node_modules that the lock file does not mark as for development. */
async function productionPackages(): Promise<readonly string[]> {
  const lock = JSON.parse(await readFile(join(PACKAGE_DIR, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
  };
  const wanted = Object.entries(lock.packages).filter(
    ([path, one]) => path !== '' && one.dev !== true && one.devOptional !== true,
  );
  const missing = wanted.filter(([path]) => !existsSync(join(PACKAGE_DIR, path)));
  if (missing.length > 0)
    throw new Error(
      `npm packages are missing: ${missing.map(([path]) => path).join(', ')}; run npm run setup`,
    );
  return wanted.map(([path]) => path);
}

async function addFolder(files: Contents, folder: string, isTyped: boolean): Promise<void> {
  const entries = await readdir(join(PACKAGE_DIR, folder), { withFileTypes: true });
  for (const entry of entries) {
    const path = `${folder}/${entry.name}`;
    // What lies in a package's own node_modules is in the lock file, too.
    if (entry.isDirectory() && entry.name !== 'node_modules') await addFolder(files, path, isTyped);
    const isWanted = isRead(path.slice('node_modules/'.length), isTyped) || /^licen[cs]e/i.test(entry.name);
    if (entry.isFile() && isWanted) files.set(`${LIB}/${path}`, join(PACKAGE_DIR, path));
  }
}

/** Whether a file of a dependency may be loaded, or its declarations be read by an author's compiler. */
function isRead(path: string, isTyped: boolean): boolean {
  if (DEPENDENCY_LEFT_OUT.test(path) || OTHER_BUILDS.test(path)) return false;
  return !SOURCE.test(path) || (isTyped && isDeclaration(path));
}
