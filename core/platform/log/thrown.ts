/**
 * Words for whatever was thrown. Plugins may throw anything: null, an object whose `message` throws, a proxy that
 * throws at every touch, an error whose cause is itself, 100 MB of text. None of these functions throws.
 */
import { inspect } from 'node:util';

/** Characters of one message, or of a stack, that are looked at. */
const LONGEST = 65_536;
/** Causes below causes. */
const MOST_CAUSES = 10;
const WORDLESS = 'it threw something that cannot be put into words';
/** Of what is no error, what is told; other fields may hold a secret, which no text can be rid of again. */
const TOLD_FIELDS = ['name', 'code', 'message', 'status'];
const LONGEST_FIELD = 100;

/** `instanceof`, where even that may throw. */
export function isA<T>(thrown: unknown, kind: abstract new (...given: never[]) => T): thrown is T {
  try {
    return thrown instanceof kind;
  } catch {
    // It throws when it is looked at.
    return false;
  }
}

/** Whether it is an error whose message and stack can be read. */
export function isReadableError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error && typeof thrown.message === 'string' && isTextOrNothing(thrown.stack);
  } catch {
    // It throws when it is looked at.
    return false;
  }
}

function isTextOrNothing(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

/** What it says itself, without its causes; several lines where it has them. Never empty. */
export function messageOf(thrown: unknown): string {
  try {
    return worded(thrown).slice(0, LONGEST);
  } catch {
    // Its own code for that throws.
    return WORDLESS;
  }
}

function worded(thrown: unknown): string {
  if (typeof thrown === 'string' && thrown !== '') return thrown;
  if (!isCompound(thrown)) return `it threw ${inspect(thrown)}, which is no error`;
  const { message } = thrown as { readonly message?: unknown };
  if (typeof message === 'string' && message !== '') return message;
  if (thrown instanceof Error)
    return `${isCompound(thrown.name) ? kindOf(thrown) : String(thrown.name)} without a message`;
  return `it threw ${shown(thrown)}, which is no error`;
}

function isCompound(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** `Response { status: 401 }`: its class, and what of it says what is wrong. */
function shown(thrown: object): string {
  const fields = TOLD_FIELDS.map((key) => [key, (thrown as Record<string, unknown>)[key]] as const);
  const told = fields.filter(([, value]) => value !== undefined && value !== '' && !isCompound(value));
  const text = inspect(Object.fromEntries(told), { breakLength: Infinity, maxStringLength: LONGEST_FIELD });
  const kind = kindOf(thrown);
  return kind === 'Object' ? text : `${kind} ${text}`;
}

function kindOf(thrown: object): string {
  const { constructor } = (Object.getPrototypeOf(thrown) ?? {}) as { readonly constructor?: unknown };
  const name: unknown = typeof constructor === 'function' ? constructor.name : undefined;
  return typeof name === 'string' && /^\w{1,100}$/.test(name) ? name : 'Object';
}

/** Its message and those of its causes, each behind a colon; several lines where they have them. Never empty. */
export function sentence(thrown: unknown): string {
  return withCauses(thrown).map(messageOf).join(': ').slice(0, LONGEST);
}

/** Itself and its causes, as far as they can be read. */
export function withCauses(thrown: unknown): readonly unknown[] {
  const found = new Set([thrown]);
  for (
    let at = causeOf(thrown);
    at !== undefined && found.size < MOST_CAUSES && !found.has(at);
    at = causeOf(at)
  )
    found.add(at);
  return [...found];
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined;
  } catch {
    // It throws when it is looked at.
    return undefined;
  }
}

/** What others may work on as they do on any error: itself, or one that says the same. */
export function properError(thrown: unknown): Error {
  return isReadableError(thrown) && Object.isExtensible(thrown)
    ? thrown
    : Object.assign(new Error(sentence(thrown)), { stack: stackOf(thrown) });
}

/** Empty where it has none. */
export function stackOf(thrown: unknown): string {
  try {
    const { stack } = thrown as Error;
    return thrown instanceof Error && typeof stack === 'string' ? stack.slice(0, LONGEST) : '';
  } catch {
    // It throws when it is looked at.
    return '';
  }
}
