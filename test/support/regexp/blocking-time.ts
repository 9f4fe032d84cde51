/**
 * How long a pattern holds the event loop up: processor time, since a busy machine is no fault of a pattern.
 * Every attack at 4 KiB; those that took longest once more at 1 MiB. What is quadratic takes minutes then,
 * and is cut short.
 */
import { createContext, Script } from 'node:vm';
import { attacksOn } from './attack-texts.ts';
import type { Attack } from './attack-texts.ts';

/**
 * What is linear takes up to 200 ms on a slow machine, for half a million matches; what is quadratic takes
 * minutes.
 */
export const LONGEST_MS = 500;
const SHORT_BYTES = 4_096;
const LONG_BYTES = 1_048_576;
const WORST = 2;
const TRIES = 3;

export interface Longest {
  /** Of the processor. */
  readonly ms: number;
  /** Of the longer text. */
  readonly bytes: number;
}

export interface HoldUp {
  readonly ms: number;
  readonly text: string;
}

interface Room {
  pattern: RegExp;
  texts: readonly string[];
  tries: number;
  now: () => number;
  times: number[];
}

const room: Room = { pattern: /x/, texts: [], tries: 1, now: () => performance.now(), times: [] };
const context = createContext(room);
// As the code does it: all matches of a global one, else the first. Of a few tries the shortest: the first
// one compiles.
const use = new Script(`
  for (const text of texts) {
    let ms = Infinity;
    for (let again = 0; again < tries; again += 1) {
      const begun = now();
      pattern.lastIndex = 0;
      if (pattern.global) text.replaceAll(pattern, '');
      else pattern.test(text);
      ms = Math.min(ms, now() - begun);
    }
    times.push(ms);
  }`);

/** The longest hold-up, or the first above the limit, at which it is cut short. */
export function worstHoldUp(
  source: string,
  flags: string,
  longest: Longest = { ms: LONGEST_MS, bytes: LONG_BYTES },
): HoldUp {
  const pattern = new RegExp(source, flags);
  const attacks = attacksOn(source, flags);
  const { times } = measure(
    pattern,
    attacks.map((attack) => textOf(attack, SHORT_BYTES)),
    { tries: 3, timeout: 1_000 },
  );
  // What was at work when all was cut short counts as the worst of them.
  const ranked = attacks
    .slice(0, times.length + 1)
    .sort((a, b) => (times[attacks.indexOf(b)] ?? Infinity) - (times[attacks.indexOf(a)] ?? Infinity));
  let worst: HoldUp = { ms: 0, text: '' };
  for (const attack of ranked.slice(0, WORST)) {
    const ms = leastHoldUpMs(pattern, textOf(attack, longest.bytes), longest.ms);
    if (ms > worst.ms) worst = { ms, text: JSON.stringify(attack) };
    if (ms > longest.ms) break;
  }
  return worst;
}

/**
 * Of up to three tries: on a busy machine the processor's time, too, can be several times that of a quiet one
 * (two processes share one core's caches and units), while what is quadratic is cut short each time.
 */
function leastHoldUpMs(pattern: RegExp, text: string, limitMs: number): number {
  let least = Infinity;
  for (let count = 0; count < TRIES && least > limitMs; count += 1)
    least = Math.min(least, holdUpMs(pattern, text, limitMs));
  return least;
}

/** Of the processor, and more than `limitMs` when it was cut short. */
function holdUpMs(pattern: RegExp, text: string, limitMs: number, timeout = 2 * limitMs): number {
  const before = process.cpuUsage();
  const { wasCut } = measure(pattern, [text], { tries: 1, timeout });
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1_000;
  // Cut short while others had the processor: real time is many times that of the processor on a busy
  // machine.
  return wasCut && ms <= limitMs ? holdUpMs(pattern, text, limitMs, 4 * timeout) : ms;
}

function measure(
  pattern: RegExp,
  texts: readonly string[],
  { tries, timeout }: { readonly tries: number; readonly timeout: number },
): { times: readonly number[]; wasCut: boolean } {
  Object.assign(room, { pattern, texts, tries, times: [] });
  try {
    use.runInContext(context, { timeout });
    return { times: room.times, wasCut: false };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return { times: room.times, wasCut: true };
    throw error;
  }
}

function textOf({ head, run, tail }: Attack, bytes: number): string {
  const text = head + run.repeat(Math.ceil(bytes / run.length)) + tail;
  // Flat: a text that is built of pieces is put together by the first use of it.
  const encoding = [...(head + run + tail)].every((character) => character <= 'ÿ') ? 'latin1' : 'utf16le';
  return Buffer.from(text, encoding).toString(encoding);
}
