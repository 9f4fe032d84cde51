import type { Refusal } from '../answer.ts';

const REFUSALS = new Set([400, 401, 403, 404, 409, 412, 423]);

/** Before a byte of the file was touched. */
export function wasRefused(status: number | undefined): boolean {
  return status !== undefined && REFUSALS.has(status);
}

/** What a client is told when the backend did not take a file. */
export function failure(status: number | undefined): Refusal {
  if (status === 423) return { status, text: 'The file is locked.' };
  if (status === 409 || status === 404) return { status: 409, text: 'There is no such folder.' };
  if (status !== undefined && wasRefused(status)) return { status, text: 'The share refuses this.' };
  if (status === 507) return { status, text: 'There is no room for this file on the cache disk.' };
  return { status: 502, text: 'The share did not take the whole file; try again.' };
}
