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
import { scanToml } from '../../sdk/toml/scan.ts';
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

/**
 * `text` must be TOML. Comments that may contain a secret become `# ******** 1`, numbered, so that they can
 * be restored: by their place in the running text. Of a former text, a note that is not in that has no number.
 */
export function shownText(text: string, document: Document, assembly: Known, running = text): string {
  const secrets = secretPaths(document as never, assembly);
  const notes = maskedNotes(text, document, assembly, running);
  const masked = replaced(text, [...maskedValues(text, secrets), ...notes]);
  const wanted = maskSecrets(document, secrets) as Document;
  // When masking the text did not give the wanted document, the rendered document is shown, without the
  // user's comments.
  return isShowing(masked, wanted) && !holdsAny(masked, literals(document, secrets))
    ? masked
    : renderDocument(wanted, assembly.root);
}

function isShowing(masked: string, wanted: Document): boolean {
  const read = parseDocument(masked);
  return 'document' in read && isDeepStrictEqual(copy(read.document), copy(wanted));
}

function replaced(text: string, pieces: readonly Piece[]): string {
  const sorted = [...pieces].sort((a, b) => b.start - a.start);
  return sorted.reduce((before, { start, end, by }) => before.slice(0, start) + by + before.slice(end), text);
}

function maskedValues(text: string, secrets: SecretPaths): Piece[] {
  const pieces: Piece[] = [];
  scanToml(text, {
    value: (path, { start, end }) => {
      const isEmpty = ['""', "''", ''].includes(text.slice(start, end));
      if (!isEmpty && isSecretPath(secrets, path)) pieces.push({ start, end, by: inlineValue(MASK) });
    },
  });
  return pieces;
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
  text: string,
  former: { readonly text: string; readonly document: Document },
  assembly: Known,
): Restored {
  const read = parseDocument(text);
  if ('problem' in read) return unrestored(text);
  const secrets = secretPaths(former.document as never, assembly);
  const sources = new Map<string, string>();
  scanToml(former.text, {
    value: (path, { start, end }) => void sources.set(JSON.stringify(path), former.text.slice(start, end)),
  });
  const kept: KeptSecret[] = [];
  const strange = new Map<string, string>();
  const pieces: Piece[] = [];
  scanToml(text, {
    value: (path, { start, end }) => {
      if (!isMask(text.slice(start, end))) return;
      const was = samePlace(path, read.document, former.document);
      const name = was ? undefined : strangeName(path, read.document, former.document);
      if (name !== undefined) strange.set(joinPath(path), name);
      if (was === undefined || !isSecretPath(secrets, was)) return;
      kept.push({ path: [...path], was });
      const value = valueAt(former.document, was);
      pieces.push({ start, end, by: sources.get(JSON.stringify(was)) ?? inlineValue(value) });
    },
  });
  const gone = changedSecrets(replaced(text, pieces), literals(former.document, secrets), assembly);
  return { text: replaced(text, [...pieces, ...restoredNotes(text, former.text, gone)]), kept, strange };
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
