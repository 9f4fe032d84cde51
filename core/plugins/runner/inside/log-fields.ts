/** The fields of a line that a plugin logs, as they can be sent. */
import { inspect } from 'node:util';

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
  return key === 'err' && value instanceof Error ? plainError(value) : value;
}

function plain(read: () => unknown): unknown {
  let value: unknown;
  try {
    value = read();
    const text = JSON.stringify(value, bigIntsToo) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    // Not JSON: a value in a circle, or one that throws.
    return inspect(value);
  }
}

function bigIntsToo(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

/** As pino writes one: its kind, what it says with its causes, its stack, and what else it has. */
function plainError(error: Error): object {
  const causes = causesOf(error);
  return {
    type: error.constructor.name,
    ...error,
    cause: undefined,
    message: causes.map((one) => one.message).join(': '),
    stack: causes.map((one) => String(one.stack)).join('\ncaused by: '),
  };
}

/** Itself first. */
function causesOf(error: Error): readonly Error[] {
  const found: Error[] = [];
  let at: unknown = error;
  while (at instanceof Error && !found.includes(at)) {
    found.push(at);
    at = at.cause;
  }
  return found;
}
