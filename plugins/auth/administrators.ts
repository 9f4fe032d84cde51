/** Whether anybody is left who can change everything over HTTP: whoever is no more cannot be put back from there. */
import { isAnybodyAsked } from 'mountkeeper';
import type { Config, ConfigProblem, LoadedConfig, WebConfig } from 'mountkeeper';
import { isExpired } from './token.ts';

/** By a password, as a user or with a token, of which a document over HTTP is taken. `now`: ms since 1970. */
function hasAdministrator({ password, tokens, users }: WebConfig, now: number): boolean {
  return (
    password !== '' ||
    users.some(({ role }) => role === 'admin') ||
    tokens.some((token) => canConfigure(token) && !isExpired(token, now))
  );
}

/** One for certain shares may not. */
function canConfigure({ role, shares, verbs }: WebConfig['tokens'][number]): boolean {
  return shares === undefined && (role === 'admin' || verbs?.includes('config') === true);
}

/** Somebody is asked who it is, and nobody of them is an administrator. */
function isWithout(web: WebConfig, now: number): boolean {
  return isAnybodyAsked(web) && !hasAdministrator(web, now);
}

/** The file may want it so: then it is changed by somebody with a shell. */
export function administratorProblems({ web }: Config, now: number): readonly ConfigProblem[] {
  if (!isWithout(web, now)) return [];
  const message =
    'nobody of [web] is an administrator, so nobody can change the configuration over HTTP; set web.password, or ' +
    'give a user or a token the role "admin"';
  return [{ path: 'web', message, isWarning: true }];
}

/** The sentence that refuses a document over HTTP which takes the last administrator away. */
export function lockoutProblem(now: WebConfig, next: LoadedConfig, at: number): string | undefined {
  return next.origin === 'http' && hasAdministrator(now, at) && isWithout(next.config.web, at)
    ? 'this leaves no administrator, and nobody could take it back over HTTP; set web.password or keep one, or write ' +
        'it into the configuration file'
    : undefined;
}
