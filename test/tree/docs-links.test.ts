/** Every relative link of every page leads to a file of the project, and its fragment to a heading there. */
import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PROFILES } from '../../plugins/presets/profiles.ts';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const PASSED_OVER = new Set(['node_modules', 'dist', '.git', '.cache', 'coverage']);

async function pages(folder = PROJECT): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).filter(
    (entry) => !PASSED_OVER.has(entry.name),
  );
  const below = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map((entry) => pages(join(folder, entry.name))),
  );
  return [
    ...entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => join(folder, entry.name)),
    ...below.flat(),
  ];
}

/** Without what stands in code, where brackets are brackets. */
function prose(text: string): string {
  return text
    .replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ' '));
}

function linksIn(text: string): string[] {
  return [...prose(text).matchAll(/\]\(([^()\s]+)\)|^\[[^\]\n]+\]: (\S+)$/gm)]
    .map(([, inline, defined]) => inline ?? defined ?? '')
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
}

/** As forges make them of headings: lower case, punctuation gone, spaces to hyphens; and those that a page sets. */
function anchorsIn(text: string): Set<string> {
  const headings = [...text.matchAll(/^#{1,6} +(.+)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...headings, ...[...text.matchAll(/<a id="([^"]+)">/g)].map((match) => match[1] ?? '')]);
}

async function problem(page: string, link: string): Promise<string | undefined> {
  const [path = '', fragment] = link.split('#');
  const target = path === '' ? page : join(dirname(page), decodeURIComponent(path));
  const found = await stat(target).catch(() => undefined);
  const where = `${relative(PROJECT, page)}: ${link}`;
  if (!found || relative(PROJECT, target).startsWith('..')) return `${where} leads nowhere`;
  if (fragment === undefined || !target.endsWith('.md')) return undefined;
  return anchorsIn(await readFile(target, 'utf8')).has(fragment) ? undefined : `${where} has no such heading`;
}

describe('links of the documents', () => {
  it('lead to files and headings that are there', async () => {
    const all = await pages();
    const checked = await Promise.all(
      all.map(async (page) => {
        const links = linksIn(await readFile(page, 'utf8'));
        return {
          count: links.length,
          problems: (await Promise.all(links.map((link) => problem(page, link)))).filter(
            (one) => one !== undefined,
          ),
        };
      }),
    );
    assert.deepEqual(
      checked.flatMap(({ problems }) => problems),
      [],
    );
    assert.ok(checked.reduce((sum, { count }) => sum + count, 0) > 30, 'links are found at all');
  });

  it('are looked at by this test as they are by a reader', async () => {
    const page = join(PROJECT, 'README.md');
    assert.deepEqual(linksIn('[a](x.md) `[b](y.md)` [c](https://example.org) ![d](e/f.png)\n[`g`]: h.md#i'), [
      'x.md',
      'e/f.png',
      'h.md#i',
    ]);
    assert.match((await problem(page, 'docs/none.md')) ?? '', /leads nowhere/);
    assert.match((await problem(page, 'docs/architecture.md#none')) ?? '', /no such heading/);
    const contract = 'docs/reference/contract.md';
    assert.equal(await problem(page, `${contract}#hook-aftermount`), undefined);
    assert.match((await problem(page, `${contract}#hook-aftermuont`)) ?? '', /no such heading/);
    assert.equal(await problem(page, 'docs/architecture.md#the-one-idea'), undefined);
  });
});

describe('operations', () => {
  it('gives the presets the values that they have', async () => {
    const text = await readFile(join(PROJECT, 'docs/operations.md'), 'utf8');
    const { photographer, video, office } = PROFILES;
    for (const key of [
      'chunk_limit',
      'multi_thread_streams',
      'multi_thread_cutoff',
      'buffer_size',
      'write_back',
    ] as const) {
      const row = `| \`${key}\` | ${photographer[key]} | ${video[key]} | ${office[key]} |`;
      assert.ok(text.includes(row), row);
    }
  });
});
