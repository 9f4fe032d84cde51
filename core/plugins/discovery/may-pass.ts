/**
 * What kept a plugin from being loaded may be the machine and not the plugin: one that is busy with its start, or has
 * no room for a process just now. Such a plugin is tried again.
 */
import { isA, withCauses } from '../../platform/log/thrown.ts';

/** No answer in time, or a process that somebody else has ended or that could not be started. */
export class MayPass extends Error {}

const CODES: ReadonlySet<unknown> = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC']);

export function mayPass(error: unknown): boolean {
  return withCauses(error).some((one) => isA(one, MayPass) || CODES.has(codeOf(one)));
}

function codeOf(error: unknown): unknown {
  try {
    return (error as { readonly code?: unknown } | null | undefined)?.code;
  } catch {
    // It throws when it is looked at.
    return undefined;
  }
}
