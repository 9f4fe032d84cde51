/** What a third party's plugin asks for in its package.json, in words, and what it gets when it says nothing. */
import type { Permission, PluginInfo } from '../contract/services.ts';

/** Each in words that follow "it may". */
const WORDS: Readonly<Record<Permission, string>> = {
  'read-status': 'read the status',
  'send-commands': 'limit the bandwidth, reconnect shares, send notifications',
  'hold-mounts': 'keep shares from being mounted',
  network: 'use the network and the services of this machine',
  'own-files': 'keep files in its own folder',
  files: 'read and write every file that its user can',
  processes: 'start processes',
  workers: 'start threads',
  addons: 'load native code',
};

/** All that there are. */
export const PERMISSIONS = Object.keys(WORDS) as readonly Permission[];

/** Of a plugin whose package.json does not say. */
export const DEFAULT_PERMISSIONS: readonly Permission[] = [
  'read-status',
  'send-commands',
  'network',
  'own-files',
];

/** One that there was, and that never allowed anything: a package.json that still names it stays as good as it was. */
const GONE = 'change-config';

/** Throws a sentence for what is no list of permissions. */
export function permissionsIn(declared: unknown): readonly Permission[] {
  if (declared === undefined) return DEFAULT_PERMISSIONS;
  const known = Object.keys(WORDS).join(', ');
  if (!Array.isArray(declared))
    throw new Error(`"permissions" in its package.json must be a list of these: ${known}`);
  for (const one of declared as readonly unknown[])
    if (typeof one !== 'string' || !(Object.hasOwn(WORDS, one) || one === GONE))
      throw new Error(
        `its package.json asks for the permission ${JSON.stringify(one)}, which does not exist; there are ${known}`,
      );
  const asked = new Set(declared as readonly (Permission | typeof GONE)[]);
  return [...asked].filter((one) => one !== GONE);
}

/** What an author should know who still asks for what there is not any more. */
export function goneIn(declared: unknown): readonly string[] {
  if (!Array.isArray(declared) || !declared.includes(GONE)) return [];
  return [
    `package.json asks for the permission "${GONE}", which there is not any more: no plugin in a process of its own ` +
      'can change the configuration; take it out',
  ];
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

/**
 * What follows where a plugin may use the network, its process has the daemon's own user, and nobody is asked for a
 * password: the API cannot tell it from those who may.
 */
export function everyUser(
  permissions: readonly Permission[],
  isAnybodyAsked: boolean,
): PluginInfo['everyUser'] {
  if (isAnybodyAsked || !permissions.includes('network')) return undefined;
  return {
    detail:
      'over HTTP it may change the configuration, as every local user may: its process ' +
      "has the daemon's own user, and nobody is asked for a password",
    advice:
      'set web.password, or take "network" out of the permissions in its package.json; from the command socket it is ' +
      'kept by a user of its own alone, which it has beside a daemon that is root',
  };
}
