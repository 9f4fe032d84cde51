/**
 * Rewrites a value that stands behind its equals sign, such as a list or an inline table: what stays the same keeps
 * its place, its layout and its comments.
 */
import { isDeepStrictEqual } from 'node:util';
import { isTable } from './document.ts';
import type { Document } from './document.ts';
import type { Segment } from './path.ts';
import type { ValueSpan } from './scan.ts';
import { bareOrQuoted, inlineValue } from './value.ts';

/** A value of the text, with its path. */
export interface Placed extends ValueSpan {
  readonly path: readonly Segment[];
}

interface Change {
  readonly before: unknown;
  readonly wanted: unknown;
}

/** `values`: all of the text. */
export function rewritten(text: string, values: readonly Placed[], place: Placed, change: Change): string {
  const splices = [...new Rewriting(text, values).value(place, change)];
  splices.sort((one, other) => one.start - other.start || one.end - other.end);
  // In one go: a list may have thousands of items.
  const ends = [0, ...splices.map(({ end }) => end)];
  const pieces = splices.map(({ start, by }, index) => text.slice(ends[index], start) + by);
  return pieces.join('') + text.slice(ends.at(-1));
}

interface Splice {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** An item of a list, or a key with its value. */
interface Member extends Placed {
  /** Behind its comma; without one the same as `end`. */
  readonly after: number;
  /** Nothing but a comment stands in its lines beside it. */
  readonly isAlone: boolean;
}

/** By the index of what was there. */
interface Plan {
  readonly changed: ReadonlyMap<number, Change>;
  readonly removed: ReadonlySet<number>;
  /** Texts of new members behind one that stays; -1: before all. */
  readonly added: ReadonlyMap<number, readonly string[]>;
}

class Rewriting {
  readonly #text: string;
  readonly #values: readonly Placed[];

  constructor(text: string, values: readonly Placed[]) {
    this.#text = text;
    this.#values = values;
  }

  value(place: Placed, { before, wanted }: Change): readonly Splice[] {
    if (isDeepStrictEqual(before, wanted)) return [];
    const members = typeof before === 'object' && typeof wanted === 'object' ? this.#members(place) : [];
    const plan = planOf(members, before, wanted);
    // Nothing stands in it, or something else is to be there.
    if (!plan) return [{ start: place.start, end: place.end, by: inlineValue(wanted) }];
    return [
      ...[...plan.changed].flatMap(([index, change]) =>
        onlyOf(members, index).flatMap((member) => this.value(member, change)),
      ),
      ...[...plan.removed].flatMap((index) => onlyOf(members, index).map((member) => this.#without(member))),
      ...[...plan.added].flatMap(([index, texts]) => this.#added(members, index, texts)),
      ...this.#withoutComma(members, plan),
    ];
  }

  #members(place: Placed): readonly Member[] {
    const depth = place.path.length + 1;
    return this.#values
      .filter(({ path, keyStart, end }) => path.length === depth && keyStart > place.start && end < place.end)
      .map((value) => {
        const comma = /(?:\s|#[^\n]*\n)*,/y;
        comma.lastIndex = value.end;
        const after = comma.test(this.#text) ? comma.lastIndex : value.end;
        const isAlone = this.#indent(value.keyStart) !== undefined && this.#isRestEmpty(after);
        return { ...value, after, isAlone };
      });
  }

  /** What stands before it in its line; undefined when that is not blank. */
  #indent(at: number): string | undefined {
    let start = at;
    while (this.#text[start - 1] === ' ' || this.#text[start - 1] === '\t') start -= 1;
    return start === 0 || this.#text[start - 1] === '\n' ? this.#text.slice(start, at) : undefined;
  }

  #isRestEmpty(at: number): boolean {
    const rest = /[\t\r ]*(?:#[^\n]*)?(?:\n|$)/y;
    rest.lastIndex = at;
    return rest.test(this.#text);
  }

  #lineStart(at: number): number {
    return this.#text.lastIndexOf('\n', at - 1) + 1;
  }

  /** Behind the line break. */
  #lineEnd(at: number): number {
    const found = this.#text.indexOf('\n', at);
    return found === -1 ? this.#text.length : found + 1;
  }

  #behindSpaces(at: number): number {
    const spaces = /[\t ]*/y;
    spaces.lastIndex = at;
    spaces.test(this.#text);
    return spaces.lastIndex;
  }

  /** One with lines of its own goes with them, and with the comment there: that is about it. */
  #without({ keyStart, after, end, isAlone }: Member): Splice {
    if (isAlone) return { start: this.#lineStart(keyStart), end: this.#lineEnd(after), by: '' };
    return { start: keyStart, end: after === end ? end : this.#behindSpaces(after), by: '' };
  }

  #added(members: readonly Member[], index: number, texts: readonly string[]): readonly Splice[] {
    const anchor = members[Math.max(index, 0)];
    if (!anchor) return [];
    const indent = anchor.isAlone ? this.#indent(anchor.keyStart) : undefined;
    if (index < 0) return [this.#before(anchor, texts, indent)];
    if (indent === undefined)
      return [{ start: anchor.end, end: anchor.end, by: texts.map((one) => `, ${one}`).join('') }];
    const start = this.#lineEnd(anchor.after);
    const lines = texts.map((one) => `${indent}${one}`).join(',\n');
    const hasComma = anchor.after > anchor.end;
    const comma = { start: anchor.end, end: anchor.end, by: ',' };
    return [...(hasComma ? [] : [comma]), { start, end: start, by: `${lines}${hasComma ? ',' : ''}\n` }];
  }

  #before({ keyStart }: Member, texts: readonly string[], indent: string | undefined): Splice {
    const start = indent === undefined ? keyStart : this.#lineStart(keyStart);
    const by = texts.map((one) => (indent === undefined ? `${one}, ` : `${indent}${one},\n`)).join('');
    return { start, end: start, by };
  }

  /** Where the last one had none and goes, the one that is the last now has none either. */
  #withoutComma(members: readonly Member[], { removed }: Plan): readonly Splice[] {
    const last = members.at(-1);
    const index = members.findLastIndex((_, at) => !removed.has(at));
    const left = members[index];
    if (!left || !last || left === last || last.after > last.end) return [];
    const behind = this.#behindSpaces(left.after);
    const isNext = members[index + 1]?.keyStart === behind;
    return [{ start: left.after - 1, end: isNext ? behind : left.after, by: '' }];
  }
}

function onlyOf<T>(all: readonly T[], index: number): readonly T[] {
  return all.slice(index, index + 1);
}

/** Undefined when the members of the text are not those of the value, or none is left beside which one can stand. */
function planOf(members: readonly Member[], before: unknown, wanted: unknown): Plan | undefined {
  if (members.length === 0) return undefined;
  if (Array.isArray(before) && Array.isArray(wanted))
    return before.length === members.length ? planOfList(before, wanted) : undefined;
  if (!isTable(before) || !isTable(wanted)) return undefined;
  const keys = members.map(({ path }) => String(path.at(-1)));
  // Dotted keys in an inline table are no members of their own.
  return Object.keys(before).length === keys.length ? planOfTable(keys, before, wanted) : undefined;
}

function planOfTable(keys: readonly string[], before: Document, wanted: Document): Plan | undefined {
  const staying = [...keys.entries()].filter(([, key]) => wanted[key] !== undefined);
  const changed = new Map(
    staying.map(([at, key]) => [at, { before: before[key], wanted: wanted[key] }] as const),
  );
  const removed = new Set([...keys.keys()].filter((at) => !changed.has(at)));
  const news = Object.entries(wanted)
    .filter(([key, item]) => item !== undefined && !keys.includes(key))
    .map(([key, item]) => `${bareOrQuoted(key)} = ${inlineValue(item)}`);
  if (news.length === 0) return { changed, removed, added: new Map() };
  const last = staying.at(-1)?.[0];
  return last === undefined ? undefined : { changed, removed, added: new Map([[last, news]]) };
}

function planOfList(before: readonly unknown[], wanted: readonly unknown[]): Plan {
  const changed = new Map<number, Change>();
  const removed = new Set<number>();
  const added = new Map<number, readonly string[]>();
  let last: Same = { was: -1, is: -1 };
  for (const same of [...common(before, wanted), { was: before.length, is: wanted.length }]) {
    const news = wanted.slice(last.is + 1, same.is);
    // One that stands where another stood takes its line.
    for (let was = last.was + 1; was < same.was; was += 1)
      if (news.length > 0) changed.set(was, { before: before[was], wanted: news.shift() });
      else removed.add(was);
    if (news.length > 0) added.set(same.was - 1, news.map(inlineValue));
    last = same;
  }
  return { changed, removed, added };
}

/** Indices of one item, before and after. */
interface Same {
  readonly was: number;
  readonly is: number;
  readonly previous?: Same | undefined;
}

/** As many items as possible of those that are in both lists in the same order. */
function common(before: readonly unknown[], wanted: readonly unknown[]): readonly Same[] {
  // Of equal ones the first is at the end.
  const places = new Map<string, number[]>();
  for (let was = before.length - 1; was >= 0; was -= 1) {
    const key = inlineValue(before[was]);
    const equal = places.get(key);
    if (equal) equal.push(was);
    else places.set(key, [was]);
  }
  // The last item of the chain of each length, as early in the list as any such chain ends.
  const chains: Same[] = [];
  for (const [is, item] of wanted.entries()) {
    const was = places.get(inlineValue(item))?.pop();
    if (was === undefined) continue;
    const length = chains.findLastIndex((chain) => chain.was < was) + 1;
    chains[length] = { was, is, previous: chains[length - 1] };
  }
  const found: Same[] = [];
  for (let at = chains.at(-1); at; at = at.previous) found.unshift(at);
  return found;
}
