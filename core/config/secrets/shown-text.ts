/**
 * The text of a document as it may be shown, and the way back: secrets, and values that may be one, are
 * masked. A mask that comes back stands for the running document's secret at the same key; tables of an
 * array are matched by name.
 */
import { isDeepStrictEqual } from 'node:util';
import { copy, isTable, parseDocument } from '../../sdk/toml/document.ts';
import type { Document } from '../../sdk/toml/document.ts';
import { nodeAt } from '../checks/problems.ts';
import type { KeyNode } from '../schema/key-tree.ts';
import { joinPath } from '../../sdk/toml/path.ts';
import type { Segment } from '../../sdk/toml/path.ts';
import { comment, renderDocument } from '../render.ts';
import { editToml } from '../../sdk/toml/edit.ts';
import { linesLike } from '../../sdk/toml/line-ends.ts';
import { scanToml } from '../../sdk/toml/scan.ts';
import type { ValueSpan } from '../../sdk/toml/scan.ts';
import type { Assembly } from '../schema/schema.ts';
import { isSecretPath, maskSecrets, secretPaths } from './secret-paths.ts';
import type { SecretPaths } from './secret-paths.ts';
import { inlineValue } from '../../sdk/toml/value.ts';
import { MASK } from '../../sdk/config-types.ts';

/** Words in a comment that hint at a secret next to them. */
const TELLING = /pass|pwd|secret|token|key|cred|auth|密码|口令|密钥|凭据/i;
const USER_INFO = /:\/\/[^/\s@]{1,512}@/;
/** Letters and digits longer than this are not a word, so they may be a secret. */
const LONGEST_WORD = 20;
/** Shorter values occur everywhere by chance. */
const SHORTEST_SECRET = 4;

interface Piece {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

type Known = Pick<Assembly, 'root' | 'entries'>;

/** `isAnew`: rendered from the document, without the notes and the layout of the text. */
export interface Shown {
  readonly text: string;
  readonly isAnew: boolean;
}

/**
 * `text` must be TOML. Comments that may contain a secret become `# ******** 1`, numbered, so that they can
 * be restored: by their place in the running text. Of a former text, a note that is not in that has no number.
 */
export function shownText(text: string, document: Document, assembly: Known, running = text): Shown {
  const secrets = secretPaths(document as never, assembly);
  const wanted = maskSecrets(document, secrets) as Document;
  const masked = maskedText(text, secrets, maskedNotes(text, document, assembly, running));
  const rendered = renderDocument(wanted, assembly.root);
  const isMasked =
    masked !== undefined &&
    isShowing(masked, wanted) &&
    hidesAll(masked, literals(document, secrets), withoutNotes(rendered));
  return isMasked ? { text: masked, isAnew: false } : { text: rendered, isAnew: true };
}

/** A password that is also the name of something stands there as that name; `anew` would hide it no better. */
function hidesAll(masked: string, secrets: readonly string[], anew: string): boolean {
  return secrets.every((value) => !masked.includes(value) || anew.includes(value));
}

/** Of what `renderDocument` wrote, each note in lines of its own. */
function withoutNotes(rendered: string): string {
  return rendered
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n');
}

function isShowing(masked: string, wanted: Document): boolean {
  const read = parseDocument(masked);
  return 'document' in read && isDeepStrictEqual(copy(read.document), copy(wanted));
}

function replaced(text: string, pieces: readonly Piece[]): string {
  const sorted = [...pieces].sort((a, b) => b.start - a.start);
  return sorted.reduce((before, { start, end, by }) => before.slice(0, start) + by + before.slice(end), text);
}

/** Undefined where it is written in a way that this does not understand. */
function maskedText(text: string, secrets: SecretPaths, notes: readonly Piece[]): string | undefined {
  const { pieces, tables } = maskedValues(text, secrets);
  const masked = replaced(text, [...pieces, ...notes]);
  try {
    return editToml(
      masked,
      tables.map((path) => ({ path, value: MASK })),
    );
  } catch {
    // All is written anew then.
    return undefined;
  }
}

interface Masked {
  readonly pieces: readonly Piece[];
  /** Secrets that are tables with a header: taken away, to be put back as a value. */
  readonly tables: readonly (readonly Segment[])[];
}

function maskedValues(text: string, secrets: SecretPaths): Masked {
  const tables: (readonly Segment[])[] = [];
  const pieces: Piece[] = [];
  const inside: { readonly parent: string; readonly span: ValueSpan }[] = [];
  const values = new Set<string>();
  scanToml(text, {
    table: (path, start, end) => {
      if (!isSecretPath(secrets, path)) return;
      tables.push([...path]);
      pieces.push(withLine(text, start, end));
    },
    value: (path, span) => {
      const { start, end } = span;
      const parent = path.slice(0, -1);
      values.add(JSON.stringify(path));
      const isEmpty = ['""', "''", ''].includes(text.slice(start, end));
      if (!isEmpty && isSecretPath(secrets, path)) pieces.push({ start, end, by: inlineValue(MASK) });
      if (isSecretPath(secrets, parent)) inside.push({ parent: JSON.stringify(parent), span });
    },
  });
  const headed = new Set(tables.map((path) => JSON.stringify(path)));
  for (const { parent, span } of inside) {
    // In an inline table, which is masked as a whole.
    if (values.has(parent)) continue;
    if (headed.has(parent)) pieces.push(withLine(text, span.keyStart, span.end));
    else if (span.tail !== undefined)
      pieces.push({ start: span.tail, end: span.end, by: ` = ${inlineValue(MASK)}` });
  }
  return { pieces, tables };
}

/** With the whole line where nothing else stands in it. */
function withLine(text: string, start: number, end: number): Piece {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const rest = /[\t\r ]*(?:\n|$)/y;
  rest.lastIndex = end;
  const isWhole = text.slice(lineStart, start).trim() === '' && rest.test(text);
  return isWhole ? { start: lineStart, end: rest.lastIndex, by: '' } : { start, end, by: '' };
}

function maskedNotes(text: string, document: Document, { root, entries }: Known, running: string): Piece[] {
  const known = text === running ? undefined : notesIn(running);
  const own = new Set(ownNotes(root));
  const values = literals(document, secretPaths(document as never, { root, entries }));
  return notesOf(text).flatMap(({ start, end }, index) => {
    const note = text.slice(start, end).trimEnd();
    const isHarmless = own.has(note) || (!mayHoldSecret(note) && !holdsAny(note, values));
    if (isHarmless) return [];
    const number = known === undefined ? index + 1 : known.indexOf(note) + 1;
    return [{ start, end, by: number === 0 ? `# ${MASK}` : `# ${MASK} ${number}` }];
  });
}

function notesIn(text: string): readonly string[] {
  return notesOf(text).map(({ start, end }) => text.slice(start, end).trimEnd());
}

function notesOf(text: string): { readonly start: number; readonly end: number }[] {
  const notes: { start: number; end: number }[] = [];
  scanToml(text, { comment: (start, end) => void notes.push({ start, end }) });
  return notes;
}

/** A commented-out assignment may contain a secret; so may a URL with a password. */
function mayHoldSecret(note: string): boolean {
  return (
    TELLING.test(note) ||
    USER_INFO.test(note) ||
    note.includes('=') ||
    note.split(/\s+/).some((word) => word.length > LONGEST_WORD && /\d/.test(word) && /[A-Za-z]/.test(word))
  );
}

/** Comments that the daemon itself writes. */
function ownNotes(node: KeyNode): string[] {
  const rendered = renderDocument({ connections: [], shares: [] }, node)
    .split('\n')
    .filter((line) => line.startsWith('#'));
  return [...rendered, ...described(node)];
}

function described(node: KeyNode): string[] {
  return [...comment(node.description), ...[...node.children.values()].flatMap(described)];
}

function literals(value: unknown, secrets: SecretPaths, path: readonly Segment[] = []): string[] {
  if (typeof value === 'string')
    return isSecretPath(secrets, path) && value.trim().length >= SHORTEST_SECRET ? [value.trim()] : [];
  if (Array.isArray(value)) return value.flatMap((item, index) => literals(item, secrets, [...path, index]));
  return isTable(value)
    ? Object.entries(value).flatMap(([key, item]) => literals(item, secrets, [...path, key]))
    : [];
}

function holdsAny(text: string, values: readonly string[]): boolean {
  return values.some((value) => text.includes(value));
}

// ---------------------------------------------------------------- restoring

export interface Restored {
  readonly text: string;
  /**
   * Where secrets of the running document were restored: their paths in the new document and in the running
   * one.
   */
  readonly kept: readonly KeptSecret[];
  /** Masks that stay because nothing in the running document has the name of their table: the names, by path. */
  readonly strange: ReadonlyMap<string, string>;
}

export interface KeptSecret {
  readonly path: readonly Segment[];
  readonly was: readonly Segment[];
}

/** As it was given: no mask stands for anything. */
export function unrestored(text: string): Restored {
  return { text, kept: [], strange: new Map() };
}

/**
 * Replaces masks and hidden comments of `text` by what `former` has there; a mask without a counterpart
 * stays, and every check refuses it.
 */
export function restoredText(
  given: string,
  former: { readonly text: string; readonly document: Document },
  assembly: Known,
): Restored {
  // Browsers send lines of their own.
  const text = linesLike(former.text, given);
  const read = parseDocument(text);
  if ('problem' in read) return unrestored(text);
  const secrets = secretPaths(former.document as never, assembly);
  const sources = sourcesIn(former.text);
  const kept: KeptSecret[] = [];
  const strange = new Map<string, string>();
  const pieces: Piece[] = [];
  scanToml(text, {
    value: (path, span) => {
      if (!isMask(text.slice(span.start, span.end))) return;
      const was = samePlace(path, read.document, former.document);
      const name = was ? undefined : strangeName(path, read.document, former.document);
      if (name !== undefined) strange.set(joinPath(path), name);
      if (was === undefined || !isSecretPath(secrets, was)) return;
      kept.push({ path: [...path], was });
      pieces.push(restoredValue(span, { was, sources, value: valueAt(former.document, was) }));
    },
  });
  const gone = changedSecrets(replaced(text, pieces), literals(former.document, secrets), assembly);
  return { text: replaced(text, [...pieces, ...restoredNotes(text, former.text, gone)]), kept, strange };
}

interface Sources {
  /** What stands behind the equals sign, by path. */
  readonly values: ReadonlyMap<string, string>;
  /** The last part of a dotted key with its value, by the path of the table that it is in. */
  readonly tails: ReadonlyMap<string, string>;
}

function sourcesIn(text: string): Sources {
  const values = new Map<string, string>();
  const tails = new Map<string, string>();
  scanToml(text, {
    value: (path, span) => {
      values.set(JSON.stringify(path), text.slice(span.start, span.end));
      if (span.tail !== undefined)
        tails.set(JSON.stringify(path.slice(0, -1)), text.slice(span.tail, span.end));
    },
  });
  return { values, tails };
}

/** In place of a mask; as it was written, where that can stand there. */
function restoredValue(
  { keyStart, keyEnd, start, end }: ValueSpan,
  former: { readonly was: readonly Segment[]; readonly sources: Sources; readonly value: unknown },
): Piece {
  const { sources, value } = former;
  const was = JSON.stringify(former.was);
  const tail = isTable(value) && Object.keys(value).length === 1 ? sources.tails.get(was) : undefined;
  if (tail !== undefined && keyEnd > keyStart) return { start: keyEnd, end, by: tail };
  return { start, end, by: sources.values.get(was) ?? inlineValue(value) };
}

/** Those that stand no more in the new text: nobody would know that a note with one of them is to be hidden. */
function changedSecrets(text: string, former: readonly string[], assembly: Known): readonly string[] {
  const read = parseDocument(text);
  if ('problem' in read) return former;
  const now = new Set(literals(read.document, secretPaths(read.document as never, assembly)));
  return former.filter((value) => !now.has(value));
}

function isMask(source: string): boolean {
  return source === `"${MASK}"` || source === `'${MASK}'`;
}

/** `gone`: secrets with which no note comes back. */
function restoredNotes(text: string, former: string, gone: readonly string[]): Piece[] {
  const notes = notesOf(former);
  return notesOf(text).flatMap(({ start, end }) => {
    const [, number] = /^# \*{8} (\d{1,6})$/.exec(text.slice(start, end).trimEnd()) ?? [];
    const note = number === undefined ? undefined : notes[Number(number) - 1];
    if (!note) return [];
    const by = former.slice(note.start, note.end);
    return [{ start, end, by: holdsAny(by, gone) ? `# ${MASK}` : by }];
  });
}

/** The path of the same key in another document; undefined where it has none. */
function samePlace(
  path: readonly Segment[],
  document: Document,
  other: Document,
): readonly Segment[] | undefined {
  let [here, there]: [unknown, unknown] = [document, other];
  const place: Segment[] = [];
  for (const segment of path) {
    const found =
      typeof segment === 'number' ? itemLike((here as unknown[])[segment], segment, there) : segment;
    if (found === undefined || there === undefined || there === null) return undefined;
    place.push(found);
    here = (here as Record<Segment, unknown>)[segment];
    there = (there as Record<Segment, unknown>)[found];
  }
  return there === undefined ? undefined : place;
}

/** The name of the array's table with the key, where the other document has no table of that name there. */
function strangeName(path: readonly Segment[], document: Document, other: Document): string | undefined {
  const table = path.slice(0, path.findIndex((segment) => typeof segment === 'number') + 1);
  if (table.length === 0 || samePlace(table, document, other)) return undefined;
  const item = valueAt(document, table);
  const name = isTable(item) ? item['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

function valueAt(document: Document, path: readonly Segment[]): unknown {
  return path.reduce<unknown>(
    (inside, segment) => (inside as Record<Segment, unknown> | undefined)?.[segment],
    document,
  );
}

function itemLike(item: unknown, index: number, others: unknown): number | undefined {
  if (!Array.isArray(others)) return undefined;
  const name = isTable(item) ? item['name'] : undefined;
  if (typeof name !== 'string') return index < others.length ? index : undefined;
  const found = others.findIndex((other) => isTable(other) && other['name'] === name);
  return found === -1 ? undefined : found;
}

/**
 * Two documents in which secrets that were left masked are replaced by references: somebody who does not
 * know a secret may use it only where a reference that is in the file may be used.
 */
export function asReferences<T>(
  documents: { readonly next: T; readonly current: T },
  kept: readonly KeptSecret[],
  root: KeyNode,
): { readonly next: T; readonly current: T } {
  if (kept.length === 0) return documents;
  const [next, current] = [copy(documents.next), copy(documents.current)];
  for (const { path, was } of kept) {
    const node = nodeAt(root, path);
    // Where the schema accepts only text, the value stays text: it is the same in both.
    if (node !== undefined && node.type !== 'secret') continue;
    put(next, path);
    put(current, was);
  }
  return { next, current };
}

function put(document: unknown, path: readonly Segment[]): void {
  const parent = path
    .slice(0, -1)
    .reduce<unknown>(
      (value, segment) => (value as Record<Segment, unknown> | undefined)?.[segment],
      document,
    );
  const key = path.at(-1) ?? '';
  if (typeof parent === 'object' && parent !== null)
    (parent as Record<Segment, unknown>)[key] = { credential: `kept:${joinPath(path.slice(0, 1))}` };
}
