import { Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';

/** Throws where the NAS would not keep what is to be there: it would wait here for good. */
export function refuseName({ upstream }: Exchange, parts: readonly string[]): void {
  for (const { pattern, because } of upstream.attached?.share.refusedNames ?? []) {
    const isUnkept = new RegExp(pattern, 'iu');
    const name = parts.find((part) => isUnkept.test(part));
    if (name !== undefined) throw new Refused(403, `The NAS does not keep this name: ${because}.`);
  }
}
