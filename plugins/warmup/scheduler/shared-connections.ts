/** Shares of one connection share its line: finds who else uses it. */
import type { LiveShare, Mount } from 'mountkeeper';
import type { Terms } from '../job-description.ts';

/** The share's mount, if it may be warmed up now. */
export function readyMount(share: LiveShare | undefined): Mount | undefined {
  return share?.health === 'healthy' && share.remoteAnswers !== false ? share.mount : undefined;
}

/** Mounts of other shares on the same connection. */
export function otherMountsOf(share: string, all: readonly LiveShare[]): Terms['otherMounts'] {
  const connection = connectionOf(share, all);
  const others = all.filter(({ spec }) => spec.share.name !== share && spec.connection.name === connection);
  return others.map(({ mount }) => mount?.cacheAccess?.()).filter((access) => access !== undefined);
}

export function connectionOf(share: string, all: readonly LiveShare[]): string | undefined {
  return all.find(({ spec }) => spec.share.name === share)?.spec.connection.name;
}
