/**
 * Checks what a plugin returns: it is copied as plain data of the type that the contract says, or left out.
 * So it cannot break, change or grow what the core publishes later.
 */
import { oneLine } from '../../sdk/one-line.ts';
import type { Bandwidth, ShareLimit } from '../../contract/mount.ts';
import type { Check, Notice } from '../../contract/notifications.ts';
import type { ShareTrouble } from '../../contract/status.ts';

const DEEPEST = 8;
/** Enough for 1,000 rules of eight fields each, ten times over. */
const MOST_VALUES = 100_000;
/** Of one plugin in a cycle. */
const MOST_CHARACTERS = 1_048_576;
const LONGEST_TEXT = 65_536;
const LONGEST_SENTENCE = 4_096;
/** It stands on the share's card. */
const LONGEST_TROUBLE = 300;
const NOTICE_LEVELS = new Set(['info', 'warning', 'error']);
const CHECK_RESULTS = new Set(['ok', 'warning', 'error']);

/**
 * A value that the contract does not allow. The message continues a sentence that begins with the value's
 * name.
 */
export class UnfitValue extends Error {}

/** What values that belong together may hold in all. Used up as they are copied. */
export class Budget {
  readonly #values: number;
  readonly #characters: number;
  readonly #whole: Budget | undefined;
  #valuesLeft: number;
  #charactersLeft: number;

  /** Of `whole` all is taken, too. */
  constructor(values = MOST_VALUES, characters = MOST_CHARACTERS, whole?: Budget) {
    [this.#values, this.#characters, this.#whole] = [values, characters, whole];
    [this.#valuesLeft, this.#charactersLeft] = [values, characters];
  }

  /** What a copy used up that came to nothing is there for the next one. */
  copy(value: unknown): unknown {
    const before = this.#left;
    try {
      return plainCopy(value, this);
    } catch (error) {
      this.#left = before;
      throw error;
    }
  }

  get #left(): Left {
    return [this.#valuesLeft, this.#charactersLeft, this.#whole && this.#whole.#left];
  }

  set #left([values, characters, whole]: Left) {
    [this.#valuesLeft, this.#charactersLeft] = [values, characters];
    if (this.#whole && whole) this.#whole.#left = whole;
  }

  /** Throws an `UnfitValue` when nothing is left. */
  take(characters: number): void {
    this.#valuesLeft -= 1;
    this.#charactersLeft -= characters;
    if (this.#valuesLeft < 0) throw new UnfitValue(`holds more than ${this.#values} values`);
    if (this.#charactersLeft < 0)
      throw new UnfitValue(`holds more than ${this.#characters} characters in all`);
    this.#whole?.take(characters);
  }
}

type Left = readonly [values: number, characters: number, whole: Left | undefined];

/**
 * A copy of null, booleans, finite numbers, texts, lists and plain objects of these. Undefined properties
 * are left out. Throws an `UnfitValue`, and whatever a getter throws.
 */
export function plainCopy(value: unknown, budget = new Budget()): unknown {
  return copied(value, { depth: 0, budget });
}

interface Progress {
  readonly depth: number;
  readonly budget: Budget;
}

function copied(value: unknown, { depth, budget }: Progress): unknown {
  budget.take(typeof value === 'string' ? value.length : 0);
  if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return value;
  if (typeof value === 'string') {
    if (value.length > LONGEST_TEXT)
      throw new UnfitValue(`holds a text of more than ${LONGEST_TEXT} characters`);
    return value;
  }
  if (typeof value !== 'object')
    throw new UnfitValue(`holds ${typeof value === 'number' ? String(value) : `a ${typeof value}`}`);
  return copiedObject(value, { depth, budget });
}

function copiedObject(value: object, { depth, budget }: Progress): unknown {
  if (depth === DEEPEST) throw new UnfitValue(`is nested more than ${DEEPEST} deep, or holds itself`);
  const next = { depth: depth + 1, budget };
  // Not by its own map(), which may be anything.
  if (Array.isArray(value)) return Array.from(value as unknown[], (item) => copied(item, next));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw new UnfitValue('holds an object that is no plain one');
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    entries.map(([key, item]) => {
      budget.take(key.length);
      return [key, copied(item, next)];
    }),
  );
}

const CORE_STATUS = new Set(['startedAt', 'shares', 'allSynced', '__proto__']);

const CORE_SHARE: ReadonlySet<string> = new Set([
  'name',
  'mounted',
  'rcPort',
  'cacheBytes',
  'dirtyCount',
  'isDirtyCountUnknown',
  'isLeaving',
  'erroredFiles',
  'speed',
  'transfers',
  'errors',
  'health',
  'healthMessage',
  '__proto__',
]);

/** Whether the core alone says it of the daemon. */
export function isCoreField(field: string): boolean {
  return CORE_STATUS.has(field);
}

/** Whether the core alone says it of a share. */
export function isCoreShareField(field: string): boolean {
  return CORE_SHARE.has(field);
}

/**
 * A copy of a status field's value. It is of its default's kind, where there is a default that is not null.
 * Throws an `UnfitValue`.
 */
export function statusValue(value: unknown, budget: Budget, standard?: unknown): unknown {
  refusePromise(value);
  const copy = budget.copy(value);
  if (standard === undefined || standard === null || kindOf(copy) === kindOf(standard)) return copy;
  throw new UnfitValue(`is ${kindOf(copy)}, and its default is ${kindOf(standard)}`);
}

/** Nobody waits for it, and nobody hears of its end. */
export function refusePromise(value: unknown): void {
  if (!(value instanceof Promise)) return;
  // Its error would end the daemon.
  value.catch(() => undefined);
  throw new UnfitValue('is a promise; it must be there at once');
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  const kinds: Readonly<Record<string, string>> = { object: 'a table', string: 'a text', number: 'a number' };
  return kinds[typeof value] ?? `a ${typeof value}`;
}

function textIn(value: unknown, key: string): string {
  const text = (value as Record<string, unknown> | null)?.[key];
  if (typeof text !== 'string') throw new UnfitValue(`needs a text as ${key}`);
  return text;
}

function sentenceIn(value: unknown, key: string): string {
  return textIn(value, key).slice(0, LONGEST_SENTENCE);
}

function wordIn<T extends string>(value: unknown, key: string, words: ReadonlySet<string>): T {
  const word = sentenceIn(value, key);
  if (!words.has(word)) throw new UnfitValue(`needs ${[...words].join(', ')} as ${key}`);
  return word as T;
}

function lineIn(value: unknown, key: string): string {
  return oneLine(textIn(value, key), LONGEST_SENTENCE);
}

/** Throws an `UnfitValue`. */
export function notice(value: unknown): Notice {
  return { level: wordIn(value, 'level', NOTICE_LEVELS), message: lineIn(value, 'message') };
}

/** Throws an `UnfitValue`. */
export function check(value: unknown): Check {
  return {
    title: lineIn(value, 'title'),
    result: wordIn(value, 'result', CHECK_RESULTS),
    detail: lineIn(value, 'detail'),
    advice: lineIn(value, 'advice'),
  };
}

/** Bytes per second; 0 is unlimited. Throws an `UnfitValue`. */
export function bandwidth(value: unknown): Bandwidth {
  const { up, down } = (value ?? {}) as Partial<Bandwidth>;
  const isRate = (rate: unknown): rate is number =>
    Number.isFinite(rate) && (rate as number) >= 0 && (rate as number) <= Number.MAX_SAFE_INTEGER;
  if (!isRate(up) || !isRate(down)) throw new UnfitValue('needs up and down, bytes a second, 0 for no limit');
  return { up, down };
}

/** A share's limit. Throws an `UnfitValue`. */
export function shareLimit(value: unknown): ShareLimit {
  return { share: sentenceIn(value, 'share'), ...bandwidth(value) };
}

/**
 * What is wrong with a share, under the plugin's name. A semicolon or a line of its own would let it pass for what the
 * core says beside it. Throws an `UnfitValue`.
 */
export function shareTrouble(value: unknown, plugin: string): ShareTrouble {
  const parts = sentenceIn(value, 'message').split(/[;；\p{Cc}\p{Zl}\p{Zp}]/u);
  const said = parts.map((part) => part.trim()).filter((part) => part !== '');
  const message = said.join(', ').slice(0, LONGEST_TROUBLE);
  if (message === '') throw new UnfitValue('needs a text as message');
  return { share: sentenceIn(value, 'share'), message: `${plugin}: ${message}` };
}
