import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { dryRun } from '../../core/plugins/instance/instance.js';
import { pickPlugin } from '../../core/plugins/discovery/manifest.js';
import { emptyLedger } from '../../core/plugins/instance/ledger.js';
import type { Plugin } from 'mountkeeper';
import { EXAMPLES } from '../support/plugins/examples.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string) => readFile(path.join(root, file), 'utf8');

describe('docs/plugins.md', () => {
  it('quotes the example as it is', async () => {
    const quoted = /<!-- example -->\n```ts\n([^]*?)```\n<!-- \/example -->/.exec(
      await read('docs/plugins.md'),
    )?.[1];
    assert.equal(quoted, await read('plugins/example/index.ts'));
  });

  it('quotes the fourth protocol as it is', async () => {
    const quoted = /<!-- exporter -->\n```js\n([^]*?)```\n<!-- \/exporter -->/.exec(
      await read('docs/plugins.md'),
    )?.[1];
    assert.equal(quoted, await read('docs/examples/listing/index.js'));
  });

  it('links every example', async () => {
    const page = await read('docs/plugins.md');
    for (const name of EXAMPLES) assert.ok(page.includes(`(examples/${name}/README.md)`), name);
  });
});

describe('the example', () => {
  it('uses every verb of the contract and stays short', async () => {
    const text = await read('plugins/example/index.ts');
    assert.ok(text.trimEnd().split('\n').length <= 120);
    for (const verb of ['config', 'log', 'signal', 'use', 'send'])
      assert.match(text, new RegExp(`ctx\\.${verb}\\b`), verb);
    const plugin = pickPlugin(
      (await import('../../plugins/example/index.js' as string)) as Record<string, unknown>,
    ) as Plugin;
    const ledger = dryRun(plugin, pino({ level: 'silent' }));
    const lists = Object.entries(emptyLedger('', false))
      .filter(([, value]) => Array.isArray(value))
      .map(([name]) => name);
    assert.deepEqual(
      lists.filter((name) => (ledger[name as keyof typeof ledger] as readonly unknown[]).length === 0),
      [],
    );
  });
});
