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

/** Whether an answer says, or shows by leaving names out, that there is nothing by a name. */
export function saysWhatIsMissing(
  { method, headers }: BackendCall,
  { statusCode }: IncomingMessage,
): boolean {
  return statusCode === 404 || (statusCode === 207 && method === 'PROPFIND' && headers['depth'] === '1');
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
  const begun = await beginning(answered);
  return begun.toString('latin1').endsWith(BROKEN_OFF);
}

/** The whole message if it is short; it stays to be read. Empty when it is longer, or ends too early. */
function beginning(message: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve) => {
    const finish = (pieces: Buffer): void => {
      message.off('readable', look).off('close', leave);
      resolve(pieces);
    };
    const leave = (): void => finish(Buffer.alloc(0));
    const look = (): void => {
      const { complete, readableLength } = message;
      if (readableLength > SHORT_BYTES) return leave();
      if (!complete) return;
      const whole = (message.read() as Buffer | null) ?? Buffer.alloc(0);
      if (whole.length > 0) message.unshift(whole);
      finish(whole);
    };
    message.on('readable', look).once('close', leave);
  });
}
