/**
 * Changes single values in TOML text and keeps comments and layout. The result is parsed again and compared
 * with what was meant: text in a form that this does not understand is left as it is.
 */
import { isDeepStrictEqual } from 'node:util';
import type { TomlEdit } from '../../contract/config.ts';
import { copy, isTable, parseDocument } from './document.ts';
import type { Document } from './document.ts';
import { rewritten } from './inline.ts';
import type { Placed } from './inline.ts';
import { isOfWindows, linesLike, unixLines } from './line-ends.ts';
import { joinPath } from './path.ts';
import type { Segment } from './path.ts';
import { scanToml } from './scan.ts';
import { bareOrQuoted, inlineValue } from './value.ts';

/** Throws a sentence when the text is not TOML or cannot be changed there. */
export function editToml(text: string, edits: readonly TomlEdit[]): string {
  return linesLike(text, edited(isOfWindows(text) ? unixLines(text) : text, edits));
}

function edited(text: string, edits: readonly TomlEdit[]): string {
  return edits.reduce((before, edit) => {
    const wanted = withEdit(readToml(before), edit);
    const after = applied(before, edit, wanted);
    const read = parseDocument(after);
    if ('document' in read && isDeepStrictEqual(plain(read.document), plain(wanted))) return after;
    throw new Error(`${joinPath(edit.path)} is written in a way that only an editor of the text can change`);
  }, text);
}

/**
 * The tables of a text, bounded in number and depth as every document is. Throws a sentence when it is not
 * TOML.
 */
export function readToml(text: string): Record<string, unknown> {
  const read = parseDocument(text);
  if ('problem' in read) throw new Error(read.problem.message);
  return copy(read.document);
}

/** Drops the order of keys and the parser's prototypes; an empty table or array counts as absent. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isTable(value)) return value;
  const kept = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    kept.map(([key, item]) => [key, plain(item)] as const).filter(([, item]) => !isEmpty(item)),
  );
}

function isEmpty(value: unknown): boolean {
  return (Array.isArray(value) && value.length === 0) || (isTable(value) && Object.keys(value).length === 0);
}

function withEdit(document: Document, { path, value }: TomlEdit): Document {
  let at: Record<Segment, unknown> = document;
  path.slice(0, -1).forEach((segment, index) => {
    at[segment] ??= typeof path[index + 1] === 'number' ? [] : {};
    at = at[segment] as Record<Segment, unknown>;
    if (typeof at !== 'object' || at === null) throw new Error(`${joinPath(path)} lies in what is no table`);
  });
  const last = path.at(-1) ?? '';
  if (Array.isArray(at) && value === undefined) at.splice(Number(last), 1);
  else if (value === undefined) delete at[last];
  else at[last] = value;
  return document;
}

interface Table {
  readonly path: readonly Segment[];
  readonly start: number;
  readonly end: number;
}

class Layout {
  readonly tables: Table[] = [];
  readonly values: Placed[] = [];
  readonly text: string;

  constructor(text: string) {
    this.text = text;
    scanToml(text, {
      table: (path, start, end) => void this.tables.push({ path: [...path], start, end }),
      value: (path, span) => void this.values.push({ path: [...path], ...span }),
    });
  }

  value(path: readonly Segment[]): Placed | undefined {
    return this.values.find((one) => isDeepStrictEqual(one.path, path));
  }

  table(path: readonly Segment[]): Table | undefined {
    return this.tables.find((one) => isDeepStrictEqual(one.path, path));
  }

  /**
   * The last key of a table without a header of its own, such as `web.port`, and what stands before the last part of
   * such a key.
   */
  dottedSibling(table: readonly Segment[]): { readonly end: number; readonly lead: string } | undefined {
    const found = this.values.findLast(({ path, keyStart, isInline }) => {
      if (isInline || !isBelow(path, table)) return false;
      return this.#headed(keyStart).length < table.length;
    });
    if (!found) return undefined;
    const indent = this.text.slice(this.lineStart(found.keyStart), found.keyStart);
    return { end: found.end, lead: `${indent}${header(table.slice(this.#headed(found.keyStart).length))}.` };
  }

  /** The table that a line is in, by its header. */
  #headed(at: number): readonly Segment[] {
    return this.tables.findLast(({ start }) => start < at)?.path ?? [];
  }

  /** Offset after the line break of the line that contains `at`. */
  lineEnd(at: number): number {
    const found = this.text.indexOf('\n', at);
    return found === -1 ? this.text.length : found + 1;
  }

  lineStart(at: number): number {
    return this.text.lastIndexOf('\n', at - 1) + 1;
  }

  /** Offset after the last line of `[path]` itself, without the tables below it. */
  tableEnd(table: Table): number {
    const next = this.tables.find((one) => one.start > table.start)?.start ?? this.text.length;
    const own = this.values.filter((one) => one.keyStart > table.start && one.keyStart < next);
    return this.lineEnd(Math.max(table.end, ...own.map(({ end }) => end)));
  }
}

function applied(text: string, { path, value }: TomlEdit, wanted: Document): string {
  const layout = new Layout(text);
  const there = layout.value(path);
  const written = inlineParent(layout, path) ?? (value === undefined ? undefined : there);
  if (written) {
    const change = { before: at(readToml(text), written.path), wanted: at(wanted, written.path) };
    return rewritten(text, layout.values, written, change);
  }
  return value === undefined ? removed(layout, path, there) : added(layout, path, value);
}

function at(document: Document, path: readonly Segment[]): unknown {
  return path.reduce<unknown>(
    (value, segment) => (value as Record<Segment, unknown> | undefined)?.[segment],
    document,
  );
}

/** The inline value, such as `{ host = "nas" }`, that contains the path. */
function inlineParent(layout: Layout, path: readonly Segment[]): Placed | undefined {
  for (let length = 1; length < path.length; length += 1) {
    const found = layout.value(path.slice(0, length));
    if (found) return found;
  }
  return undefined;
}

function removed(layout: Layout, path: readonly Segment[], there: Placed | undefined): string {
  const { text } = layout;
  if (there) return spliced(text, layout.lineStart(there.keyStart), layout.lineEnd(there.end), '');
  const own = layout.tables.filter((table) => isBelow(table.path, path));
  // From the last to the first, so that earlier offsets stay right. Comments above the next table belong to
  // it.
  return [...own]
    .reverse()
    .reduce(
      (before, table) => spliced(before, layout.lineStart(table.start), layout.tableEnd(table), ''),
      text,
    );
}

function added(layout: Layout, path: readonly Segment[], value: unknown): string {
  const { text } = layout;
  const [parent, key] = [path.slice(0, -1), path.at(-1)];
  const isNewTable = typeof key === 'number' || (isTable(value) && parent.length === 0);
  if (isNewTable) return appended(text, tableText(path, value));
  const line = `${bareOrQuoted(String(key))} = ${inlineValue(value)}\n`;
  const table = layout.table(parent);
  if (table) return inserted(text, layout.tableEnd(table), line);
  const sibling = layout.dottedSibling(parent);
  if (sibling) return inserted(text, layout.lineEnd(sibling.end), `${sibling.lead}${line}`);
  if (parent.length > 0) return withTable(layout, parent, line);
  const first = layout.tables[0]?.start ?? text.length;
  return inserted(text, layout.lineStart(first), line);
}

/** In an array of tables, behind what its item has already: at the end of the text it would be of the last item. */
function withTable(layout: Layout, path: readonly Segment[], line: string): string {
  const { text, tables } = layout;
  const block = `[${header(path)}]\n${line}`;
  const item = path.slice(0, path.findLastIndex((segment) => typeof segment === 'number') + 1);
  const last = item.length === 0 ? undefined : tables.findLast((one) => isBelow(one.path, item));
  if (!last) return appended(text, block);
  const where = layout.tableEnd(last);
  return appended(text.slice(0, where), block) + text.slice(where);
}

function isBelow(path: readonly Segment[], ancestor: readonly Segment[]): boolean {
  return isDeepStrictEqual(path.slice(0, ancestor.length), ancestor);
}

function tableText(path: readonly Segment[], value: unknown): string {
  const isItem = typeof path.at(-1) === 'number';
  const name = header(isItem ? path.slice(0, -1) : path);
  const lines = Object.entries(value as Document).map(
    ([key, item]) => `${bareOrQuoted(key)} = ${inlineValue(item)}\n`,
  );
  return `${isItem ? `[[${name}]]` : `[${name}]`}\n${lines.join('')}`;
}

function header(path: readonly Segment[]): string {
  return path
    .filter((segment) => typeof segment === 'string')
    .map(bareOrQuoted)
    .join('.');
}

function spliced(text: string, start: number, end: number, by: string): string {
  return text.slice(0, start) + by + text.slice(end);
}

/** Inserts `line` as a line of its own. */
function inserted(text: string, where: number, line: string): string {
  const isOpen = where > 0 && text[where - 1] !== '\n';
  return spliced(text, where, where, isOpen ? `\n${line}` : line);
}

function appended(text: string, block: string): string {
  if (text.trim() === '') return block;
  return `${text}${text.endsWith('\n') ? '' : '\n'}\n${block}`;
}
