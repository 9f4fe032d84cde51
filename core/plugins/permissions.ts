/** What a third party's plugin asks for in its package.json, in words, and what it gets when it says nothing. */
import type { Permission } from '../contract/services.ts';

/** Each in words that follow "it may". */
const WORDS: Readonly<Record<Permission, string>> = {
  'read-status': 'read the status',
  'change-config': 'change the configuration',
  'send-commands': 'hold back mounts, limit the bandwidth, reconnect shares, send notifications',
  network: 'use the network and the services of this machine',
  'own-files': 'keep files in its own folder',
  files: 'read and write every file that its user can',
  processes: 'start processes',
  workers: 'start threads',
  addons: 'load native code',
};

/** Of a plugin whose package.json does not say. */
export const DEFAULT_PERMISSIONS: readonly Permission[] = [
  'read-status',
  'send-commands',
  'network',
  'own-files',
];

/** Throws a sentence for what is no list of permissions. */
export function permissionsIn(declared: unknown): readonly Permission[] {
  if (declared === undefined) return DEFAULT_PERMISSIONS;
  const known = Object.keys(WORDS).join(', ');
  if (!Array.isArray(declared))
    throw new Error(`"permissions" in its package.json must be a list of these: ${known}`);
  for (const one of declared as readonly unknown[])
    if (typeof one !== 'string' || !Object.hasOwn(WORDS, one))
      throw new Error(
        `its package.json asks for the permission ${JSON.stringify(one)}, which does not exist; there are ${known}`,
      );
  return [...new Set(declared as readonly Permission[])];
}

/** As "read the status, start processes". */
export function inWords(permissions: readonly Permission[]): string {
  return permissions.length === 0
    ? 'show pages, figures and notices of its own, and nothing else'
    : permissions.map((one) => WORDS[one]).join(', ');
}

/** What an author has to do to be given one. */
export function howToAsk(permission: Permission): string {
  return `add "${permission}" to "mountkeeper": { "permissions": [ … ] } in its package.json`;
}
