/** The field `err` of a log's line. */
import { pino } from 'pino';
import { isReadableError, sentence, stackOf } from './thrown.ts';

/** Characters of its message and of its stack. */
const LONGEST = 65_536;

/** As pino writes an error; whatever else was thrown in words. Never throws: it is called where errors are caught. */
export function loggedError(thrown: unknown): object {
  try {
    if (isReadableError(thrown)) return whole(thrown);
    if (isWritten(thrown)) return { ...thrown, ...shortened(thrown) };
  } catch {
    // One that cannot be changed, or of which some other field throws.
  }
  return { type: typeof thrown, message: sentence(thrown), stack: stackOf(thrown) || undefined };
}

function whole(error: Error): object {
  const written = pino.stdSerializers.err(error);
  return Object.assign(written, shortened(written));
}

interface Written {
  readonly message: string;
  readonly stack: string;
}

/** As another process has written its error. */
function isWritten(thrown: unknown): thrown is Written {
  const { message, stack } = (thrown ?? {}) as Partial<Written>;
  return typeof message === 'string' && typeof stack === 'string';
}

function shortened({ message, stack }: Written): Written {
  return { message: message.slice(0, LONGEST), stack: stack.slice(0, LONGEST) };
}
