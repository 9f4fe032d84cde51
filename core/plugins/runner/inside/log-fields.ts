/** The fields of a line that a plugin logs, as they can be sent. */
import { isReadableError, sentence, stackOf, withCauses } from '../../../platform/log/thrown.ts';

type Fields = Readonly<Record<string, unknown>>;
const UNREADABLE = '[throws when it is read]';

/** Later ones stand above earlier ones. A getter may throw, a list may hold itself. */
export function plainFields(...all: readonly Fields[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const fields of all)
    for (const key of Object.keys(fields)) {
      const value = plain(() => written(key, fields[key]));
      if (value !== undefined) found[key] = value;
    }
  return found;
}

function written(key: string, value: unknown): unknown {
  return key === 'err' && isThrown(value) ? plainError(value) : value;
}

/** Never one text of an object: secrets are masked by the names of their keys, which a text has no more. */
function plain(read: () => unknown): unknown {
  try {
    const text = JSON.stringify(read(), writable()) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    // A getter, or its own code for JSON.
    return UNREADABLE;
  }
}

/** As pino writes them: of what holds itself a word, of large numbers the number. */
function writable(): (this: unknown, key: string, value: unknown) => unknown {
  const above: unknown[] = [];
  return function noted(this: unknown, _key, value) {
    if (typeof value === 'bigint') return Number(value);
    if (typeof value !== 'object' || value === null) return value;
    while (above.length > 0 && above.at(-1) !== this) above.pop();
    if (above.includes(value)) return '[Circular]';
    above.push(value);
    return value;
  };
}

/** An error, or what throws when that is asked. */
function isThrown(value: unknown): boolean {
  try {
    return value instanceof Error;
  } catch {
    // Words are made of it with care.
    return true;
  }
}

/** As pino writes one: its kind, what it says with its causes, its stack, and what else it has. */
function plainError(thrown: unknown): unknown {
  const stack = withCauses(thrown).map(stackOf).join('\ncaused by: ');
  const said = { type: typeof thrown, message: sentence(thrown), stack };
  if (!isReadableError(thrown)) return said;
  try {
    return { ...thrown, ...said, type: thrown.constructor.name, cause: undefined };
  } catch {
    // Some field of it throws.
    return said;
  }
}
