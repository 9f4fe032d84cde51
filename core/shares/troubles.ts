/** What plugins find wrong with shares that work, as the status says it: behind the core's own words, never instead. */
import type { ShareStatus, ShareTrouble } from '../contract/status.ts';

/** Of one plugin, on one share: a card has room for a few sentences. */
const MOST = 3;

/** Sentences by share; the plugin's name stands before the first colon of each. */
export type Troubles = ReadonlyMap<string, readonly string[]>;

export function troublesByShare(given: readonly ShareTrouble[]): Troubles {
  const byShare = new Map<string, string[]>();
  for (const { share, message } of given) {
    const said = byShare.get(share) ?? [];
    byShare.set(share, said);
    const name = message.slice(0, message.indexOf(':') + 1);
    const own = said.filter((one) => one.startsWith(name));
    if (own.length < MOST && !own.includes(message)) said.push(message);
  }
  return byShare;
}

/** Only of a share that is mounted; why another is not, the core says. */
export function withTroubles(status: ShareStatus, troubles: Troubles): ShareStatus {
  const said = troubles.get(status.name);
  if (!said || !status.mounted) return status;
  const own = status.healthMessage === null ? [] : [status.healthMessage];
  return { ...status, healthMessage: [...own, ...said].join('; ') };
}
