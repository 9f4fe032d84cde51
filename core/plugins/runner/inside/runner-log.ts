/**
 * `ctx.log` of a plugin in its own process: each line goes to the daemon, which writes it. Takes what pino takes,
 * without its 8 MB: pino itself is loaded for a plugin that gives a child rules of its own.
 */
import { createRequire } from 'node:module';
import { format } from 'node:util';
import type { Logger } from '../../../contract/platform.ts';
import type { Said } from '../protocol.ts';
import { plainFields } from './log-fields.ts';

/** Twice what the daemon takes in a second; what is beyond is not even sent. */
const MOST_A_SECOND = 100;
const LEVELS: Readonly<Record<string, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
  silent: Infinity,
};
const MARK = /%[sdifjoOc]/g;

type Fields = Readonly<Record<string, unknown>>;
type Line = Omit<Extract<Said, { is: 'log' }>, 'is'>;
type Write = (line: Line) => void;

interface ChildOptions extends Fields {
  readonly level?: string;
  readonly msgPrefix?: string;
}

interface Parts {
  readonly level: string;
  readonly write: Write;
  readonly bound?: Fields;
  readonly prefix?: string;
  readonly onChild?: (child: LeanLogger) => void;
}

/** What of pino's logger plugins use. */
class LeanLogger {
  readonly levels = { values: LEVELS };
  onChild: (child: LeanLogger) => void;
  readonly #write: Write;
  readonly #prefix: string;
  #bound: Fields;
  #level = '';
  readonly trace = this.#at('trace');
  readonly debug = this.#at('debug');
  readonly info = this.#at('info');
  readonly warn = this.#at('warn');
  readonly error = this.#at('error');
  readonly fatal = this.#at('fatal');

  constructor({ level, write, bound = {}, prefix = '', onChild = () => undefined }: Parts) {
    this.level = level;
    this.#write = write;
    this.#bound = bound;
    this.#prefix = prefix;
    this.onChild = onChild;
  }

  get level(): string {
    return this.#level;
  }

  set level(level: string) {
    if (!Object.hasOwn(LEVELS, level)) throw new Error(`unknown level ${level}`);
    this.#level = level;
  }

  get levelVal(): number {
    return LEVELS[this.#level] ?? Infinity;
  }

  silent(): void {}

  flush(done?: () => void): void {
    done?.();
  }

  isLevelEnabled(level: string): boolean {
    return (LEVELS[level] ?? -Infinity) >= this.levelVal;
  }

  bindings(): Fields {
    return { ...this.#bound };
  }

  setBindings(more: Fields): void {
    this.#bound = { ...this.#bound, ...more };
  }

  child(more: Fields, options: ChildOptions = {}): LeanLogger {
    const { level = this.#level, msgPrefix = '', ...rules } = options;
    const bound = { ...this.#bound, ...more };
    const parts = { level, bound, prefix: this.#prefix + msgPrefix, write: this.#write };
    const child = Object.keys(rules).length > 0 ? byPino(parts, rules) : new LeanLogger(parts);
    child.onChild = this.onChild;
    this.onChild(child);
    return child;
  }

  #at(level: string): (...said: readonly unknown[]) => void {
    return (...said) => this.#say(level, said);
  }

  #say(level: string, [first, ...more]: readonly unknown[]): void {
    if (!this.isLevelEnabled(level)) return;
    if (typeof first !== 'object' || first === null) return this.#put(level, {}, [first, ...more]);
    const fields = (first instanceof Error ? { err: first } : first) as Fields;
    const [text = first instanceof Error ? first.message : fields['msg'], ...values] = more;
    this.#put(level, fields, [text, ...values]);
  }

  #put(level: string, fields: Fields, [text = '', ...values]: readonly unknown[]): void {
    const { msg: _, ...own } = plainFields(this.#bound, fields);
    const message = typeof text === 'string' ? text : format('%j', text);
    const marks = message.match(MARK)?.length ?? 0;
    const whole = marks === 0 || values.length === 0 ? message : format(message, ...values.slice(0, marks));
    this.#write({ level, message: this.#prefix + whole, fields: own });
  }
}

/** A child with serializers, hidden fields or the like. */
function byPino({ level, bound, prefix, write }: Parts, rules: Fields): LeanLogger {
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino');
  const formatters = { level: (label: string) => ({ level: label }) };
  const line = (text: string): void => {
    const { level: name, msg = '', ...fields } = JSON.parse(text) as { level: string; msg?: unknown };
    write({ level: name, message: typeof msg === 'string' ? msg : JSON.stringify(msg), fields });
  };
  const root = pino({ level, base: null, timestamp: false, formatters }, { write: line });
  const child = root.child({ ...bound }, { ...rules, level, ...(prefix && { msgPrefix: prefix }) });
  return child as unknown as LeanLogger;
}

export function runnerLog(level: string, say: (message: Said) => void): Logger {
  let sinceMs = performance.now();
  let lines = 0;
  const write: Write = (line) => {
    const nowMs = performance.now();
    if (nowMs - sinceMs > 1_000) [sinceMs, lines] = [nowMs, 0];
    lines += 1;
    if (lines <= MOST_A_SECOND) say({ is: 'log', ...line });
  };
  return new LeanLogger({ level, write }) as unknown as Logger;
}
