/** What the button "Add" of the form puts into the text. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { readToml } from '../../../../core/sdk/index.ts';
import { CATALOGUES } from '../../../../plugins/dashboard/languages.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { Editor } from '../../../../plugins/dashboard/settings/editor.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';

const changes = { check: async () => ({ ok: false, stage: 'parse', message: '', problems: [] }) };
const services: Readonly<Record<string, unknown>> = {
  configChanges: changes,
  config: {
    keys: () => [],
    current: { config: { web: { listen: '127.0.0.1', port: 8090 } } },
    isShownAnew: () => false,
    secretsIn: () => () => false,
  },
  shares: { list: () => [] },
};
const editor = new Editor({
  use: (name: string) => services[name],
  find: (name: string) => (name === 'configChanges' ? changes : undefined),
} as never);

/** The text afterwards. */
async function added(array: string, text: string): Promise<string> {
  const form = { text, path: JSON.stringify([array]) };
  const tab = { id: 'settings', title: 'Settings', texts: CATALOGUES, render: () => null };
  const { content } = await editor.add(createView({ language: 'en', host: 'h', tab, form }));
  const [, shown = ''] = /<textarea[^>]*>\n?([^]*?)<\/textarea>/.exec(toHtml(content)) ?? [];
  return shown.replaceAll('&quot;', '"');
}

async function twice(array: string, text: string): Promise<unknown> {
  return readToml(await added(array, await added(array, text)));
}

describe('what is added in the form', () => {
  before(() => loadLibraries());

  it('has a name that nothing there has, whatever the case', async () => {
    const text = '[[connections]]\nname = "NAS"\n';
    const { connections } = (await twice('connections', text)) as { connections: { name: string }[] };
    assert.deepEqual(
      connections.map(({ name }) => name),
      ['NAS', 'nas-2', 'nas-3'],
    );
    for (const array of ['smb', 'webdav', 'web']) {
      const { [array]: section } = (await twice(`${array}.users`, '')) as Record<
        string,
        { users: { name: string }[] }
      >;
      assert.deepEqual(
        section?.users.map(({ name }) => name),
        ['user', 'user-2'],
      );
    }
  });

  it('is of the first connection or share that there is, and of none where there is none', async () => {
    const nas = '[[connections]]\nname = "office"\n[[connections]]\nname = "nas"\n';
    const { shares } = (await twice('shares', nas)) as { shares: unknown };
    assert.deepEqual(shares, [
      { name: 'files', connection: 'office' },
      { name: 'files-2', connection: 'office' },
    ]);
    const rules = await added('warmup.rules', '[[shares]]\nname = "photos"\n');
    assert.deepEqual(readToml(rules)['warmup'], { rules: [{ share: 'photos', path: '' }] });
    assert.deepEqual(readToml(await added('shares', '')), { shares: [{ name: 'files' }] });
    assert.deepEqual(readToml(await added('warmup.rules', '')), { warmup: { rules: [{ path: '' }] } });
  });
});
