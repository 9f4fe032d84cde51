/**
 * Every regular expression of a folder of built modules, found by a parser: a new one is found without a
 * list.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parse } from 'acorn';

export interface Pattern {
  /** Path below `root`, with the line in the built file. */
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

export interface Found {
  readonly patterns: readonly Pattern[];
  /** Where one is made of a text when the program runs, so that no parser sees it. */
  readonly made: readonly string[];
}

/**
 * `built` and `sources` are the same tree: what an earlier build left of a source that is gone is left out.
 */
export async function findPatterns(
  folders: readonly string[],
  { built, sources }: { readonly built: string; readonly sources: string },
): Promise<Found> {
  const patterns: Pattern[] = [];
  const made: string[] = [];
  for (const folder of folders) {
    const entries = await readdir(join(built, folder), { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
      .map((entry) => relative(built, join(entry.parentPath, entry.name)));
    for (const file of files.filter((one) => existsSync(join(sources, one.replace(/\.js$/, '.ts')))).sort()) {
      const program = parse(await readFile(join(built, file), 'utf8'), {
        ecmaVersion: 'latest',
        sourceType: 'module',
        locations: true,
        allowHashBang: true,
      });
      visit(program, (node) => {
        const place = `${file}:${node.loc?.start.line ?? 0}`;
        if (node.regex) patterns.push({ place, source: node.regex.pattern, flags: node.regex.flags });
        if (node.callee?.name === 'RegExp') made.push(place);
      });
    }
  }
  return { patterns, made };
}

/** As far as it is read here. */
interface Node {
  readonly type: string;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
  readonly loc?: { readonly start: { readonly line: number } } | null;
}

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value))
    value.forEach((item) => {
      visit(item, see);
    });
  else if (typeof value === 'object' && value !== null) {
    if ('type' in value) see(value as Node);
    for (const child of Object.values(value)) visit(child, see);
  }
}
