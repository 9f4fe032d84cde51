/**
 * The dashboard of the package that people install: its files are carried, and nothing of it is loaded before
 * the first page.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { publishedFiles } from '../../support/package/published-files.ts';

const PROJECT = fileURLToPath(new URL('../../../../', import.meta.url));

describe('the dashboard as it is installed', () => {
  it('carries every file that pages load and every catalogue', async () => {
    const carried = await publishedFiles();
    const inFolder = (folder: string): string[] =>
      readdirSync(`${PROJECT}${folder}`).map((name) => `${folder}/${name}`);
    const plugins = readdirSync(`${PROJECT}plugins`, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const catalogues = [...plugins.map((name) => `plugins/${name}/locales`), 'core/config/locales'].flatMap(
      (folder) =>
        existsSync(PROJECT + folder)
          ? readdirSync(PROJECT + folder, { recursive: true, encoding: 'utf8' })
              .filter((name) => name.endsWith('.json'))
              .map((name) => `dist/${folder}/${name}`)
          : [],
    );
    assert.ok(catalogues.length > 20 && catalogues.includes('dist/core/config/locales/config/zh.json'));
    const needed = [
      ...inFolder('plugins/dashboard/assets'),
      ...inFolder('dist/plugins/dashboard/client').filter((path) => path.endsWith('.js')),
      ...catalogues,
    ];
    assert.deepEqual(
      needed.filter((path) => !carried.has(path)),
      [],
    );
  });

  it('leaves to the first page what only drawing needs', () => {
    const script = `
      await import(${JSON.stringify(`${PROJECT}dist/plugins/dashboard/index.js`)});
      const { libraries } = await import(${JSON.stringify(`${PROJECT}dist/plugins/dashboard/pages/libraries.js`)});
      try { libraries(); } catch { process.stdout.write('not loaded'); }`;
    assert.equal(
      execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }),
      'not loaded',
    );
  });
});
