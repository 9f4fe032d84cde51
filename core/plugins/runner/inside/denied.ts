/** An error of Node's permission model, with what the author has to ask for. */
import type { Permission } from '../../../contract/services.ts';
import { howToAsk } from '../../permissions.ts';
import { sentence, withCauses } from '../../../platform/log/thrown.ts';

/** By Node's names. */
const ASKED: Readonly<Record<string, Permission>> = {
  FileSystemRead: 'files',
  FileSystemWrite: 'files',
  ChildProcess: 'processes',
  WorkerThreads: 'workers',
  Addon: 'addons',
};

const own = new Set<string>();

/** A plugin's own folder, for which it has to ask less. */
export function keepsFilesIn(folder: string): void {
  own.add(folder);
}

interface Denial {
  readonly code?: unknown;
  readonly permission?: string;
  readonly resource?: string;
}

/** As `sentence`, and for what was not permitted, what and how it would be. */
export function told(error: unknown): string {
  const denial = denialIn(error);
  if (denial === undefined) return sentence(error);
  const { permission = '', resource = '', code } = denial;
  const wanted = code === 'ERR_DLOPEN_DISABLED' ? 'addons' : askedFor(permission, resource);
  const place = resource === '' ? '' : ` (${resource})`;
  if (wanted === undefined) return `${sentence(error)}${place}`;
  return `it may not do that without the permission "${wanted}"${place}; ${howToAsk(wanted)}`;
}

function askedFor(permission: string, resource: string): Permission | undefined {
  const isOwn = [...own].some((folder) => resource === folder || resource.startsWith(`${folder}/`));
  return isOwn ? 'own-files' : ASKED[permission];
}

function denialIn(error: unknown): Denial | undefined {
  return withCauses(error).find(isDenial);
}

function isDenial(error: unknown): error is Denial {
  try {
    const { code } = error as Denial;
    return error instanceof Error && (code === 'ERR_ACCESS_DENIED' || code === 'ERR_DLOPEN_DISABLED');
  } catch {
    // It is null, or throws when it is looked at.
    return false;
  }
}
