/** Tokens that cannot do what they seem to be for. They harm nobody, so the document is taken all the same. */
import type { Config, ConfigProblem, Verb, WebConfig } from 'mountkeeper';
import { isExpired } from './token.ts';

/** Those with a route of one share, or one that tells a token of its own shares alone: see the page of roles. */
export const VERBS_OF_SHARES: ReadonlySet<Verb> = new Set<Verb>([
  ...(['status', 'files', 'queue', 'upload', 'proof'] as const),
  ...(['reconnect', 'refresh', 'warmup', 'sessions'] as const),
]);

type Token = WebConfig['tokens'][number];

/** `now`: in milliseconds since 1970. */
export function tokenWarnings({ shares, web }: Config, now: number): readonly ConfigProblem[] {
  const names = new Set(shares.map(({ name }) => name));
  return web.tokens.flatMap((token, index) => {
    const at = `web.tokens[${index}]`;
    const twin = web.tokens.slice(0, index).find(({ token_hash: hash }) => hash === token.token_hash);
    const said: readonly (readonly [key: string, sentence: string | undefined])[] = [
      ['expires', expired(token, now)],
      ['shares', withoutShares(token, names)],
      ['verbs', withoutRoutes(token)],
      ['token_hash', twin && `is the same as "${twin.name}", which is what counts; take one of both away`],
    ];
    return said.flatMap(([key, sentence]) =>
      sentence === undefined
        ? []
        : [{ path: `${at}.${key}`, message: `the token "${token.name}" ${sentence}`, isWarning: true }],
    );
  });
}

function expired(token: Token, now: number): string | undefined {
  return isExpired(token, now)
    ? `has expired (${token.expires ?? ''}) and lets nobody in; take it away, or set a later date`
    : undefined;
}

function withoutShares({ shares = [] }: Token, names: ReadonlySet<string>): string | undefined {
  const missing = shares.filter((name) => !names.has(name)).map((name) => `"${name}"`);
  if (missing.length === 0) return undefined;
  const rest = missing.length === shares.length ? ', so it reaches nothing' : '';
  return `is bound to ${missing.join(', ')}, which is no share${rest}`;
}

function withoutRoutes({ shares, verbs }: Token): string | undefined {
  if (shares === undefined || verbs === undefined || verbs.some((verb) => VERBS_OF_SHARES.has(verb)))
    return undefined;
  return `may do ${verbs.join(', ')} alone, which no token that is bound to shares may: it reaches nothing`;
}
