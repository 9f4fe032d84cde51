/**
 * The files that pages load: the dashboard's own and those of packages. Read and compressed once, for the
 * first page, and served at an address that contains their hash.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

export interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly zipped: Buffer;
}

export interface Assets {
  /** Changes with every byte of the files. */
  readonly build: string;
  find(name: string): Asset | undefined;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Loaded on every page, in this order. */
export const SCRIPTS: readonly string[] = ['htmx.js', 'app.js', 'sse.js', 'morph.js', 'outcomes.js'];
/** Loaded on the overview. */
export const OVERVIEW_FILES: readonly string[] = ['limit.js'];
/** Loaded on the settings page. */
export const SETTINGS_FILES: readonly string[] = ['settings.js'];
/** Loaded on the page of a share. */
export const CHART_FILES: readonly string[] = ['uplot.css', 'uplot.js', 'charts.js'];

/**
 * Loaded for the first page and cached for all others. A failure is not cached: the next page tries again.
 */
export class AssetCache {
  readonly #packageDir: string;
  #loading: Promise<Assets> | undefined;
  #loaded: Assets | undefined;

  /** `packageDir`: the folder of the package itself. */
  constructor(packageDir: string) {
    this.#packageDir = packageDir;
  }

  /** Hash of the loaded files; empty before the first page. */
  get build(): string {
    return this.#loaded?.build ?? '';
  }

  load(): Promise<Assets> {
    this.#loading ??= loadAssets(this.#packageDir).then(
      (assets) => {
        this.#loaded = assets;
        return assets;
      },
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    );
    return this.#loading;
  }
}

async function loadAssets(packageDir: string): Promise<Assets> {
  const { resolve } = createRequire(import.meta.url);
  const inPackage = (name: string, path: string): string => join(resolve(`${name}/package.json`), '..', path);
  // This package does not export its package.json, but its module.
  const morph = join(fileURLToPath(import.meta.resolve('idiomorph')), '../idiomorph-ext.min.js');
  const client = join(packageDir, 'dist/plugins/dashboard/client');
  const own = join(packageDir, 'plugins/dashboard/assets');
  const files: readonly (readonly [name: string, type: string, path: string])[] = [
    ['htmx.js', SCRIPT, inPackage('htmx.org', 'dist/htmx.min.js')],
    ['sse.js', SCRIPT, inPackage('htmx-ext-sse', 'dist/sse.min.js')],
    ['morph.js', SCRIPT, morph],
    ['app.js', SCRIPT, join(client, 'app.js')],
    ['aloud.js', SCRIPT, join(client, 'aloud.js')],
    ['outcomes.js', SCRIPT, join(client, 'outcomes.js')],
    ['focus.js', SCRIPT, join(client, 'focus.js')],
    ['forms.js', SCRIPT, join(client, 'forms.js')],
    ['signs.js', SCRIPT, join(client, 'signs.js')],
    ['times.js', SCRIPT, join(client, 'times.js')],
    ['values.js', SCRIPT, join(client, 'values.js')],
    ['way-in.js', SCRIPT, join(client, 'way-in.js')],
    ['uplot.js', SCRIPT, inPackage('uplot', 'dist/uPlot.iife.min.js')],
    ['charts.js', SCRIPT, join(client, 'charts.js')],
    ['settings.js', SCRIPT, join(client, 'settings.js')],
    ['limit.js', SCRIPT, join(client, 'limit.js')],
    ['uplot.css', STYLE, inPackage('uplot', 'dist/uPlot.min.css')],
    ['style.css', STYLE, join(own, 'style.css')],
    ['icon.svg', 'image/svg+xml', join(own, 'icon.svg')],
  ];
  const read = await Promise.all(
    files.map(async ([name, type, path]) => [name, await assetOf(type, path)] as const),
  );
  const hash = createHash('sha256');
  for (const [, { plain }] of read) hash.update(plain);
  const byName = new Map(read);
  return { build: hash.digest('hex').slice(0, 12), find: (name) => byName.get(name) };
}

async function assetOf(type: string, path: string): Promise<Asset> {
  const plain = await readFile(path);
  return { type, plain, zipped: await promisify(gzip)(plain) };
}
