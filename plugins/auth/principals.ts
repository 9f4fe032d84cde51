/** Users and tokens of the configuration as those who send requests, and whether they still are what they were. */
import type { Principal } from 'mountkeeper';
import type { AuthConfig, WebToken, WebUser } from './config.ts';
import { isExpired } from './token.ts';

/** `web.username`, `web.password` and `web.totp_secret`; the last two may be references. */
export type OwnLogin = Pick<AuthConfig, 'username' | 'password' | 'totp_secret'>;

/** Somebody who was let in, with what of the configuration let him in. */
export interface Admitted {
  readonly principal: Principal;
  readonly entry: WebUser | WebToken | OwnLogin;
  /** Of `web.password`: what it stood for then. Another password has another one. */
  readonly lock?: object;
}

/** Who has the password of `web.password`. */
export function ofPassword(name: string, own: OwnLogin, lock: object): Admitted {
  return { principal: { name, role: 'admin', kind: 'password' }, entry: loginOf(own), lock };
}

function loginOf({ password, totp_secret, username }: OwnLogin): OwnLogin {
  return { username, password, totp_secret };
}

export function ofUser(user: WebUser): Admitted {
  return { principal: { name: user.name, role: user.role, kind: 'user' }, entry: user };
}

export function ofToken(token: WebToken): Admitted {
  const { name, role = 'viewer', shares, verbs } = token;
  return {
    principal: { name, role, kind: 'token', ...(shares && { shares }), ...(verbs && { verbs }) },
    entry: token,
  };
}

/** False when the entry is gone, has changed, or has expired. What a reference stands for is not looked at. */
export function isCurrent({ entry, principal }: Admitted, web: AuthConfig, now: number): boolean {
  if (principal.kind === 'password') return JSON.stringify(entry) === JSON.stringify(loginOf(web));
  const list: readonly (WebUser | WebToken)[] = principal.kind === 'user' ? web.users : web.tokens;
  const kept = list.find(({ name }) => name === principal.name);
  if (kept === undefined || JSON.stringify(kept) !== JSON.stringify(entry)) return false;
  return principal.kind === 'user' || !isExpired(kept as WebToken, now);
}
