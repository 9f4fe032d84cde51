/** The rooms of the core use what docs/architecture.md says that they may, and nothing else. */
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const CORE = fileURLToPath(new URL('../../../core/', import.meta.url));
const CONTRACT = ['api.ts', 'services.ts', 'ports.ts'];

/** Folders, and files of the core's root, that a room imports from. `types`: only types, gone when it runs. */
const MAY: Readonly<Record<string, { readonly values: readonly string[]; readonly types: readonly string[] }>> = {
  config: { values: [], types: CONTRACT },
  system: { values: [], types: CONTRACT },
  sdk: { values: ['system'], types: CONTRACT },
  http: { values: ['sdk'], types: [...CONTRACT, 'plugin'] },
  plugin: { values: ['api.ts', 'hooks.ts', 'config', 'system', 'testing'], types: CONTRACT },
};

interface Import { readonly file: string; readonly room: string; readonly isType: boolean }

async function importsOf(folder: string): Promise<readonly Import[]> {
  const names = (await readdir(join(CORE, folder))).filter((name) => name.endsWith('.ts'));
  const found = await Promise.all(names.map(async (name) => {
    const text = await readFile(join(CORE, folder, name), 'utf8');
    return [...text.matchAll(/^(?:import|export)( type)?\b[^;]*?from '(\.[^']+)'/gm)].map(([, type, path = '']) => {
      const target = normalize(join(folder, path));
      return { file: `${folder}/${name}`, room: dirname(target) === '.' ? basename(target) : dirname(target), isType: type !== undefined };
    });
  }));
  return found.flat().filter(({ room }) => room !== folder);
}

describe('the rooms of the core', () => {
  for (const [folder, { values, types }] of Object.entries(MAY)) {
    it(`${folder}/ uses ${[...values, ...types].join(', ')} and no other`, async () => {
      const all = await importsOf(folder);
      assert.ok(all.length > 0, 'imports are found at all');
      const strange = all.filter(({ room, isType }) => !values.includes(room) && !(isType && types.includes(room)));
      assert.deepEqual(strange.map(({ file, room }) => `${file} uses ${room}`), []);
    });
  }

  it('have a line in the table of docs/architecture.md', async () => {
    const table = await readFile(join(CORE, '../docs/architecture.md'), 'utf8');
    const entries = await readdir(CORE, { withFileTypes: true });
    for (const { name } of entries.filter((entry) => entry.isDirectory())) assert.match(table, new RegExp(`^\\| \`core/${name}/\``, 'm'));
  });

  it('and the files of the large plugins are where the page says', async () => {
    const page = await readFile(join(CORE, '../docs/architecture.md'), 'utf8');
    const [, table = ''] = page.split('## Inside the large plugins');
    let plugin = '';
    for (const [, name, , files = ''] of (table.split('\n## ')[0] ?? '').matchAll(/^\| (?:`([\w-]+)` )?\|([^|]*)\|([^|]*)\|$/gm)) {
      plugin = name ?? plugin;
      const patterns = [...files.matchAll(/`([\w*-]+\.ts)`/g)].map(([, pattern = '']) => pattern);
      const present = patterns.length > 0 ? await readdir(join(CORE, '../plugins', plugin)) : [];
      const lost = patterns.filter((pattern) => !present.some((file) => new RegExp(`^${pattern.replace('.', '\\.').replace('*', '.*')}$`).test(file)));
      assert.deepEqual(lost, [], plugin);
    }
    assert.equal(plugin, 'warmup');
  });
});
