/** Who may use which route: everything is refused that a route does not declare (`RouteAccess`). */
import { isEnough } from 'mountkeeper';
import type { Principal, RouteAccess } from 'mountkeeper';

/** Undefined: come in. `not-found`: a share that the token must not know of. Else the sentence why not. */
export function refusalOf(
  principal: Principal,
  access: RouteAccess | undefined,
  params: Readonly<Record<string, unknown>>,
): string | undefined {
  return roleRefusal(principal, access) ?? shareRefusal(principal, access, params);
}

function roleRefusal({ name, role, verbs }: Principal, access: RouteAccess | undefined): string | undefined {
  if (verbs !== undefined) {
    const { verb } = access ?? {};
    return verb !== undefined && verbs.includes(verb)
      ? undefined
      : `The token "${name}" is for ${verbs.join(', ')} alone; this is ${verb ?? 'for no token with verbs'}.`;
  }
  const needed = access?.role ?? 'admin';
  return isEnough(role, needed) ? undefined : `This needs the role "${needed}"; "${name}" is "${role}".`;
}

function shareRefusal(
  { name, shares }: Principal,
  access: RouteAccess | undefined,
  params: Readonly<Record<string, unknown>>,
): 'not-found' | (string & {}) | undefined {
  if (shares === undefined) return undefined;
  const { share } = access ?? {};
  if (share === undefined)
    return `The token "${name}" is bound to shares; this is about more than one share.`;
  if (typeof share === 'object') return undefined;
  return shares.includes(String(params[share])) ? undefined : 'not-found';
}
