/**
 * What a broken-off upload has left in the share is taken back, unless others have put something there since: over SMB,
 * say.
 */
import type { IncomingMessage } from 'node:http';
import { clock } from '../clock.ts';
import type { Attached, BackendCall } from '../backend.ts';
import { SEEN_AFTER_MS, statBy } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { beginsAs } from './first-bytes.ts';
import type { Upload } from './journal.ts';
import { isAsItWas, isTornBy } from './torn.ts';
import { undo } from './undo.ts';

const RELEASE_MS = 300;
/** So many times what an upload has left is looked for. */
const LOOKS = 3;

/** An upload that was streamed to the backend. */
export interface Passed {
  readonly attached: Attached;
  readonly path: string;
  readonly upload: Upload;
  /** The first bytes of it. */
  readonly first: Buffer;
  /** So much has gone on to the backend. */
  readonly passedBytes: () => number;
}

/** What the backend answered, and when: it has written nothing since. */
export interface Answered {
  readonly status: number;
  readonly atMs: number;
}

/**
 * Restores the path to what it was before the upload. The file is closed, and no other client of this proxy is writing
 * it. False where nothing is known of it.
 */
export async function takeBack(passed: Passed, answered: Answered): Promise<boolean> {
  const { attached } = passed;
  // What serves from beside a mount has closed the file, the mount itself does so a moment later; and what others have
  // put there it sees a moment later, for which a share that is being taken off does not wait.
  const mayWait = attached.backend.behind !== undefined && !attached.leaving.aborted;
  await clock.sleep(mayWait ? SEEN_AFTER_MS : RELEASE_MS);
  for (let looks = 1; ; looks += 1) {
    const done = await tryToTakeBack(passed, answered);
    if (done === 'taken back') return true;
    // Of a share that is being taken off, no file may be seen any more: it is looked for when the share is back.
    if (looks === LOOKS) return done === 'not ours' || (done === 'not seen' && !attached.leaving.aborted);
    // It may be seen later what it has become, on a busy machine.
    await clock.sleep(RELEASE_MS);
  }
}

async function tryToTakeBack(
  passed: Passed,
  answered: Answered,
): Promise<'taken back' | 'not ours' | 'not seen' | 'unanswered'> {
  const { attached, path, upload } = passed;
  const ask = (call: BackendCall): Promise<IncomingMessage> => attached.ask(call);
  const { share, parts, headers } = upload;
  try {
    const found = await statBy(ask, { share, parts, host: headers['host'] ?? 'localhost' });
    if (found === undefined) return 'not seen';
    if (isAsItWas(upload, found)) return 'taken back';
    if (!isOf(passed, found, answered)) return 'not ours';
    const file = { path, host: headers['host'] ?? 'localhost', bytes: found.bytes };
    if (!(await beginsAs(passed.first, file, { ask }))) return 'not ours';
    return (await undo(upload, path, ask)) ? 'taken back' : 'unanswered';
  } catch {
    // Not mended, and tried again.
    return 'unanswered';
  }
}

/** Whether what stands there is what came of this upload. */
function isOf({ upload, passedBytes: passed }: Passed, found: Found, { status, atMs }: Answered): boolean {
  const passedBytes = passed();
  if (!isTornBy({ ...upload, seenMs: atMs, passedBytes }, found)) return false;
  // What was taken as a whole has all that was passed on; of what the backend refused it may have less.
  return status < 300 ? found.bytes === passedBytes : found.bytes <= passedBytes;
}
