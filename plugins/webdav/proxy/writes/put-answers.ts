import type { Refusal } from '../answer.ts';

const REFUSALS = new Set([400, 401, 403, 404, 409, 412, 423]);

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
