/** What a plugin's process will be able to do here beyond its permissions; as `doctor` tells of one that is on. */
import type { Peeked } from '../../../config/peek.ts';
import { everyUser } from '../../../plugins/permissions.ts';
import type { Claim } from './judge.ts';

/** In one sentence; undefined where it will not. Asked as the daemon's user. */
export async function everyUserHere(
  { name, permissions }: Claim,
  { isAnybodyAsked, isolation, stateDir }: Pick<Peeked, 'isAnybodyAsked' | 'isolation' | 'stateDir'>,
): Promise<string | undefined> {
  const found = everyUser(permissions, isAnybodyAsked);
  // Inside the daemon it may do everything, which is said.
  if (!found || isolation.get(name) === 'none') return undefined;
  const { runnerUser } = await import('../../../plugins/runner/process/own-user.ts');
  const { user } = await runnerUser(stateDir);
  return user ? undefined : `${found.detail}; ${found.advice}`;
}
