/** Who may use a route: declared next to its handler, asked of a request. */
import type { Request, RouteOptions } from '@hapi/hapi';
import type { Principal, Role, RouteAccess } from '../../contract/http.ts';

const RANKS: Readonly<Record<Role, number>> = { viewer: 1, operator: 2, admin: 3 };

/** For the `options` of a route without documentation; others say it in `documented({ … }, access)`. */
export function openTo(access: RouteAccess): RouteOptions {
  return { plugins: { access } };
}

/** Whether a role is enough. Nothing declared, or a word that is no role, is for `admin` alone. */
export function isEnough(role: Role, needed: Role | undefined): boolean {
  if (role === 'admin') return true;
  return needed !== undefined && Object.hasOwn(RANKS, needed) && RANKS[role] >= RANKS[needed];
}

/** Undefined while nobody is asked, and for the administrator's command line. */
export function principalOf({ auth }: Request): Principal | undefined {
  return (auth.credentials as unknown as Principal | null) ?? undefined;
}

/** The role of whoever sent the request; where nobody is asked, everybody is an administrator. */
export function roleOf(request: Request): Role {
  return principalOf(request)?.role ?? 'admin';
}

/** The shares that may be told of; undefined: all. */
export function sharesOf(request: Request): readonly string[] | undefined {
  return principalOf(request)?.shares;
}

/** Whether `[web]` names anybody: a password, users or tokens. Otherwise everybody is let in. */
export function isAnybodyAsked(web: object): boolean {
  const {
    password = '',
    users = [],
    tokens = [],
  } = web as {
    readonly password?: unknown;
    readonly users?: readonly unknown[];
    readonly tokens?: readonly unknown[];
  };
  return password !== '' || users.length > 0 || tokens.length > 0;
}
