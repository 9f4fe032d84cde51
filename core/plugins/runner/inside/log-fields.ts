/** The fields of a line that a plugin logs, as they can be sent. */
import { inspect } from 'node:util';
import { isReadableError, sentence, stackOf, withCauses } from '../../../platform/log/thrown.ts';

type Fields = Readonly<Record<string, unknown>>;

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

function plain(read: () => unknown): unknown {
  let value: unknown;
  try {
    value = read();
    const text = JSON.stringify(value, bigIntsToo) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    // Not JSON: a value in a circle, or one that throws.
    return inspect(value, { customInspect: false });
  }
}

function bigIntsToo(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
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
