import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { dryRun } from '../../core/plugins/instance/instance.js';
import { pickPlugin } from '../../core/plugins/discovery/manifest.js';
import { emptyLedger } from '../../core/plugins/instance/ledger.js';
import { hookKinds } from '../../core/plugins/instance/hook-kinds.ts';
import type { Plugin } from 'mountkeeper';
import { EXAMPLES } from '../support/plugins/examples.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (file: string) => readFile(path.join(root, file), 'utf8');

/** Names of the contract that are words for something else in a section of docs/plugins.md. */
const OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  'The verbs': ['reload'],
  'A process of its own': ['processes'],
  'Room on the disk': ['processes'],
  Permissions: ['processes'],
  'What version 1 has got since': ['status', 'processes'],
  Testing: ['status'],
};

/** Of docs/reference/contract.md: where each hook, command, event and service stands, by its name. */
function anchorsOf(contract: string): ReadonlyMap<string, string> {
  const found = contract.matchAll(/^\| <a id="([^"]+)"><\/a>`([^`]+)` \|/gm);
  return new Map([...found].map(([, id = '', name = '']) => [name, id]));
}

function withoutCode(page: string): string {
  return page.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/^ {4}.*$/gm, '');
}

/** Text of each section by its heading, whatever its level. */
function sectionsOf(page: string): readonly (readonly [string, string])[] {
  return page.split(/^#{1,6} /m).map((text) => [text.split('\n', 1)[0] ?? '', text]);
}

/** At the end of the page: where a label such as [`store`] leads. */
const DEFINED = /^\[`(.+)`\]: reference\/contract\.md#(\S+)$/gm;

/** Of [`store`] and of [`ctx.use('store')`][`store`]. */
function labelsIn(text: string): readonly string[] {
  return [...text.matchAll(/\[`([^`\n]+)`\](?![[(])/g)].map(([, label = '']) => label);
}

function codesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
}

/** What code in the text names: `store` of `ctx.use('store').open(…)`, else the code itself. */
function nameIn(code: string): string {
  return /\bctx\.(?:use|find|send)\('([^']+)'/.exec(code)?.[1] ?? code;
}

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

  it('links each hook, command, event and service in every section that names it', async () => {
    const anchors = anchorsOf(await read('docs/reference/contract.md'));
    assert.deepEqual(
      Object.keys(hookKinds).filter((hook) => !anchors.get(hook)?.startsWith('hook-')),
      [],
    );
    const page = withoutCode(await read('docs/plugins.md'));
    const targets = new Map([...page.matchAll(DEFINED)].map(([, name = '', id = '']) => [name, id] as const));
    for (const [name, id] of targets) assert.equal(id, anchors.get(name), name);
    const sections = sectionsOf(page.replaceAll(DEFINED, ''));
    const missing = sections.flatMap(([section, text]) => {
      const linked = labelsIn(text);
      return codesIn(text)
        .map(nameIn)
        .filter((name) => anchors.has(name) && !linked.includes(name))
        .filter((name) => OTHERWISE[section]?.includes(name) !== true)
        .map((name) => `${section}: ${name}`);
    });
    assert.deepEqual(missing, []);
    const labels = sections.flatMap(([, text]) => labelsIn(text));
    assert.ok(labels.length > 50);
    assert.deepEqual(
      labels.filter((label) => !targets.has(label)),
      [],
    );
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
