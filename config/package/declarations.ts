/**
 * What an author's compiler reads of the packages that this one depends on: those whose types its own declarations
 * name, and theirs in turn. Without them `npx tsc` of a new plugin fails in files that are not its author's.
 */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PACKAGE_DIR } from '../../core/platform/package.ts';

const DECLARATION = /\.d\.[cm]?ts$/;
/** `from 'x'`, `import 'x'`, `import('x')`, `require('x')` and `<reference types="x" />`. */
const NAMED = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\breference\s+types=)\s*(['"])([^'"\n]+)\1/g;

interface Manifest {
  readonly exports: Readonly<Record<string, { readonly types?: string }>>;
  readonly imports: Readonly<Record<string, { readonly default: string }>>;
}

export const isDeclaration = (path: string): boolean => DECLARATION.test(path);

/**
 * Those of `packages`, folders such as `node_modules/joi`, whose declarations are read where somebody imports this
 * package. Rejects when a declaration of its own imports a file that is not there.
 */
export async function typedPackages(
  published: readonly string[],
  packages: readonly string[],
): Promise<ReadonlySet<string>> {
  const { exports, imports } = JSON.parse(
    await readFile(join(PACKAGE_DIR, 'package.json'), 'utf8'),
  ) as Manifest;
  const entries = Object.values(exports).flatMap(({ types }) => matching(types, published));
  const waiting = [...(await namedFrom(entries))].map((name) => imports[name]?.default ?? name);
  const typed = new Set<string>();
  for (const name of waiting)
    for (const folder of packages.filter((one) => !typed.has(one) && isOf(name, one))) {
      typed.add(folder);
      for (const file of await declarationsIn(folder)) waiting.push(...(await namesIn(file)));
    }
  return typed;
}

/** Published files that an entry of `exports` leads to, which may have a `*` in it. */
function matching(types: string | undefined, published: readonly string[]): readonly string[] {
  const [start = '', end] = types?.replace(/^\.\//, '').split('*') ?? [];
  return published.filter((path) =>
    end === undefined ? path === start : path.startsWith(start) && path.endsWith(end),
  );
}

/** What files of this package, and those that they import, name beside files. */
async function namedFrom(files: readonly string[]): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  const known = new Set(files);
  for (const file of known)
    for (const name of await namesIn(file))
      if (name.startsWith('.')) known.add(join(file, '..', name).replace(/\.[jt]s$/, '.d.ts'));
      else names.add(name);
  return names;
}

async function namesIn(file: string): Promise<readonly string[]> {
  const text = await readFile(join(PACKAGE_DIR, file), 'utf8');
  return [...text.matchAll(NAMED)].map(([, , name = '']) => name);
}

/** Whether `htm/preact` is of the package in `node_modules/htm`; of one that lies in another's folder, too. */
function isOf(name: string, folder: string): boolean {
  const own = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
  return name === own || name.startsWith(`${own}/`);
}

async function declarationsIn(folder: string): Promise<readonly string[]> {
  const files = await readdir(join(PACKAGE_DIR, folder), { recursive: true });
  return files
    .filter((path) => isDeclaration(path) && !`/${path}`.includes('/node_modules/'))
    .map((path) => `${folder}/${path}`);
}
