/**
 * Administrators may bring code to this machine from the page, where the file allows it: whoever may not do that does
 * not become one by a document over HTTP.
 */
import { isAnybodyAsked, onlyInFile } from 'mountkeeper';
import type { Config, LoadedConfig, WebConfig } from 'mountkeeper';

/** By what administrators sign in on the page. */
function signInsOf({ password, totp_secret, username, users }: WebConfig): readonly string[] {
  const own = password === '' ? [] : [[username, password, totp_secret]];
  const others = users
    .filter(({ role }) => role === 'admin')
    .map((user) => [user.name, user.password_hash, user.totp_secret ?? '']);
  return [...own, ...others].map((one) => JSON.stringify(one));
}

/** Whether somebody could sign in as an administrator who could not before. */
function hasNewcomer(now: WebConfig, next: WebConfig): boolean {
  const known = new Set(signInsOf(now));
  return signInsOf(next).some((one) => !known.has(one));
}

/**
 * The sentence that refuses, of whoever reaches the page, to set the password by which they would be let in: where
 * nobody is named, and where `isUnguarded`, which is while the names in `[web]` count for nothing.
 */
export function firstProblem(next: Config, current: Config, isUnguarded: boolean): string | undefined {
  if (current.plugins.install_from_page !== true) return undefined;
  const isFirst = !isAnybodyAsked(current.web) && isAnybodyAsked(next.web);
  if (!isFirst && !(isUnguarded && hasNewcomer(current.web, next.web))) return undefined;
  const what = isFirst
    ? 'the first password, user or token cannot be set over HTTP while plugins.install_from_page is true'
    : 'no administrator is added, and no password of one changed, over HTTP while plugins.auth is off and ' +
      'plugins.install_from_page is true';
  return onlyInFile(what);
}

/** The sentence that refuses it of a token, which may change the configuration and not install. */
export function newcomerProblem(current: Config, next: LoadedConfig): string | undefined {
  if (next.origin !== 'http' || current.plugins.install_from_page !== true) return undefined;
  if (!hasNewcomer(current.web, next.config.web) || isPerson(next.requestedBy)) return undefined;
  return (
    'while plugins.install_from_page is true, a token may not add an administrator or change the password of one; ' +
    'sign in on the page for it, or write it into the configuration file'
  );
}

/** Signed in by a password, or at the command line of root. Whose request is not known is nobody. */
function isPerson(requester: LoadedConfig['requestedBy']): boolean {
  if (requester?.from.users !== undefined) return true;
  const kind = requester?.principal?.kind;
  return kind !== undefined && kind !== 'token';
}
