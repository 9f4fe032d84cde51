import type { Refusal } from '../answer.ts';
import type { Attached } from '../backend.ts';
import { clock } from '../clock.ts';
import { UNREAD_MS } from '../upstream.ts';

const REFUSALS = new Set([400, 401, 403, 404, 409, 412, 423]);

/** Also given by a backend beside a mount when it could not look, or not open the file. */
const BLIND = new Set([404, 405, 409, 500]);
/** A process that is killed lets go of its files a moment before it counts as dead. */
const NOTICED_MS = 50;

/**
 * Whether the backend did not take a file while what reads from the NAS below the share was dead. Resolves once looks
 * can be believed again, when the share has to go, or after `UNREAD_MS`.
 */
export async function wasUnread(attached: Attached, status: number): Promise<boolean> {
  if (attached.backend.reader === undefined || !BLIND.has(status)) return false;
  if (!attached.isInDoubt) await clock.sleep(NOTICED_MS);
  if (!attached.isInDoubt) return false;
  await attached.certain(UNREAD_MS);
  return true;
}

/** True when the backend refused before it touched the file. */
export function wasRefused(status: number | undefined): boolean {
  return status !== undefined && REFUSALS.has(status);
}

/** The answer for a client when the backend did not accept a file. */
export function failure(status: number | undefined): Refusal {
  if (status === 423) return { status, text: 'The file is locked.' };
  if (status === 409 || status === 404) return { status: 409, text: 'There is no such folder.' };
  if (status !== undefined && wasRefused(status)) return { status, text: 'The share refuses this.' };
  if (status === 507) return { status, text: 'There is no room for this file on the cache disk.' };
  return { status: 502, text: 'The share did not take the whole file; try again.' };
}
