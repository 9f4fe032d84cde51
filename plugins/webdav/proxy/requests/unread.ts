/**
 * Answers of a backend beside a mount that say no more than that it could not look: rclone's server answers so
 * whenever the file system gives an error (1.75). Taken as they are, they say that files are gone, and that a
 * folder is empty.
 */
import type { IncomingMessage } from 'node:http';
import type { BackendCall } from '../backend.ts';

/** Answers of methods that begin with a look at the path, and are given for nothing but its failure. */
const FAILED_LOOK: Readonly<Record<string, number>> = {
  PROPFIND: 405,
  DELETE: 405,
  PROPPATCH: 405,
  // A lock that fails is taken back before the answer.
  LOCK: 500,
};
/** What a copy or move is answered with when the file system gives an error. */
const FAILED_MOVE = new Set([403, 409, 500]);
/** What a listing of a folder that could not be read fits into: the folder alone is in it. */
const SHORT_BYTES = 16_384;
/** Comes after the end of the XML, when a listing breaks off. */
const BROKEN_OFF = 'Internal Server Error';

/** Nothing of the answer is taken out. `ask` sends another request to the same backend. */
export async function couldNotLook(
  call: BackendCall,
  answered: IncomingMessage,
  ask: (call: BackendCall) => Promise<IncomingMessage>,
): Promise<boolean> {
  const { method, headers } = call;
  const { statusCode } = answered;
  if (statusCode === FAILED_LOOK[method]) return true;
  if (method === 'PROPFIND') return statusCode === 207 && headers['depth'] === '1' && isBrokenOff(answered);
  return (method === 'GET' || method === 'HEAD') && statusCode === 404 && !(await isMissing(call, ask));
}

/**
 * Whether an answer says, or shows by leaving names out, that there is nothing by a name; or that no folder can be made
 * there.
 */
export function saysWhatIsMissing(
  { method, headers }: BackendCall,
  { statusCode }: IncomingMessage,
): boolean {
  if (method === 'MKCOL' && (statusCode === 405 || statusCode === 409)) return true;
  return statusCode === 404 || (statusCode === 207 && method === 'PROPFIND' && headers['depth'] === '1');
}

/** Whether a copy or move was refused, which may be for an error of the file system alone. */
export function mayHaveFailed({ statusCode }: IncomingMessage): boolean {
  return FAILED_MOVE.has(statusCode ?? 0);
}

/** Only this method tells an error from a name that nothing has. */
async function isMissing(
  { path, headers }: BackendCall,
  ask: (call: BackendCall) => Promise<IncomingMessage>,
): Promise<boolean> {
  const look = { method: 'PROPFIND', path, headers: { host: headers['host'], depth: '0' } };
  // No answer: it is asked again.
  const there = await ask(look).catch(() => undefined);
  there?.resume();
  return there?.statusCode === 404;
}

async function isBrokenOff(answered: IncomingMessage): Promise<boolean> {
  const whole = await wholeIfShort(answered);
  return whole?.toString('latin1').endsWith(BROKEN_OFF) ?? true;
}

/** The whole message, which stays to be read; empty when it is longer. Undefined when the connection ended first. */
function wholeIfShort(message: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const finish = (whole: Buffer | undefined): void => {
      message.off('readable', look).off('close', leave);
      resolve(whole);
    };
    const leave = (): void => finish(undefined);
    const look = (): void => {
      const { complete, readableLength } = message;
      // Of as much as this, or more, Node may keep no more until some of it is read.
      if (readableLength >= SHORT_BYTES) return finish(Buffer.alloc(0));
      if (!complete) return;
      const whole = (message.read() as Buffer | null) ?? Buffer.alloc(0);
      if (whole.length > 0) message.unshift(whole);
      finish(whole);
    };
    message.on('readable', look).once('close', leave);
  });
}
