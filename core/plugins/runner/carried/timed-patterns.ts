/**
 * Patterns of a stranger's schema, which are asked inside the daemon: one that takes for ever, such as
 * `/^(a+)+$/`, would hold up everything. Node ends a script that takes too long, a pattern in it included.
 */
import { createContext, Script } from 'node:vm';
import Joi from 'joi';

/** Processor time. Far longer than any honest pattern needs for what stands in a configuration. */
const LONGEST_MS = 100;
/** On a machine that is busy with others, a pattern is asked again with twice the time, this often at the most. */
const TRIES = 6;
/** Processor time of all attempts together: a little in each of them must not add up to seconds. */
const LONGEST_OF_ALL_MS = 2 * LONGEST_MS;
/** Of these times, what counts as all of it: the clock of the processor is coarse. */
const BUSY_SHARE = 0.8;
/** After that many, no pattern of the schema is asked any more. */
const MOST_TIMEOUTS = 2;

const room: { pattern: RegExp; text: string } = { pattern: /x/, text: '' };
const context = createContext(room);
const ask = new Script('pattern.exec(text)');

/** How many patterns of one schema have taken too long. */
interface Trust {
  timeouts: number;
}

/**
 * Matches as the pattern does. Where that takes too long, a rule that asks it refuses the value, and what would
 * be replaced or renamed stays as it is.
 */
class TimedPattern extends RegExp {
  readonly #plain: RegExp;
  readonly #trust: Trust;
  /** What is given up for: no match, or one where the rule refuses what matches. */
  readonly #refusal: RegExpExecArray | null;

  constructor(pattern: RegExp, trust: Trust, isInverted: boolean) {
    super(pattern);
    this.#refusal = isInverted ? /^/.exec('') : null;
    this.#plain = new RegExp(pattern);
    this.#trust = trust;
  }

  override exec(text: string): RegExpExecArray | null {
    if (this.#trust.timeouts >= MOST_TIMEOUTS) return this.#refusal;
    Object.assign(room, { pattern: this.#plain, text });
    this.#plain.lastIndex = this.lastIndex;
    const found = inTime();
    this.lastIndex = this.#plain.lastIndex;
    if (found !== 'too slow') return found;
    this.#trust.timeouts += 1;
    return this.#refusal;
  }
}

/** What the script in the room finds. A process that gets no turn for 100 ms says nothing about a pattern. */
function inTime(): RegExpExecArray | null | 'too slow' {
  let allMs = 0;
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const before = process.cpuUsage();
    try {
      return ask.runInContext(context, { timeout: LONGEST_MS * 2 ** attempt }) as RegExpExecArray | null;
    } catch {
      // Only the time can be the reason: the script does nothing else.
      const { user, system } = process.cpuUsage(before);
      const spentMs = (user + system) / 1_000;
      allMs += spentMs;
      if (spentMs >= LONGEST_MS * BUSY_SHARE || allMs >= LONGEST_OF_ALL_MS * BUSY_SHARE) break;
    }
  }
  return 'too slow';
}

/** Changes all patterns of a schema that nobody else has, also those of schemas in it. */
export function timePatterns(schema: object): void {
  const trust: Trust = { timeouts: 0 };
  const seen = new Set<object>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    // What else a schema has belongs to Joi, and to all schemas of its type.
    const own = Joi.isSchema(value) ? partsOf(value) : value;
    for (const [key, part] of Object.entries(own)) {
      if (part instanceof RegExp)
        Object.assign(own, { [key]: new TimedPattern(part, trust, isInverted(own)) });
      else visit(part);
    }
  };
  visit(schema);
}

/** Of `pattern(…, { invert: true })`. */
function isInverted(args: object): boolean {
  return (args as { options?: { invert?: unknown } }).options?.invert === true;
}

/** Joi keeps a schema's rules, its keys, items and replacements, and what counts as empty, in these three. */
function partsOf(schema: object): object {
  const { _rules, $_terms, _flags } = schema as { _rules?: unknown; $_terms?: unknown; _flags?: unknown };
  return { _rules, $_terms, _flags };
}
