import { shareAccess } from 'mountkeeper';
import type { Config, Notice, Secrets } from 'mountkeeper';
import type { WebdavConfig, WebdavUser } from '../config.ts';
import { isOpenToAll } from './open-to-all.ts';
import type { ProxyUser } from '../proxy/state.ts';

/** Users whose password is known, and a sentence for each of the others. */
export interface KnownUsers {
  readonly users: readonly ProxyUser[];
  readonly problems: readonly string[];
}

export function resolveUsers(users: readonly WebdavUser[], secrets: Secrets): KnownUsers {
  const known: ProxyUser[] = [];
  const problems: string[] = [];
  for (const { name, password } of users) {
    try {
      const clear = secrets.resolve(password);
      if (clear === '') problems.push(`the WebDAV user "${name}" cannot log in: the password is empty`);
      else known.push({ name, password: clear });
    } catch (error) {
      problems.push(`the WebDAV user "${name}" cannot log in: ${(error as Error).message}`);
    }
  }
  return { users: known, problems };
}

export type Admitted = Pick<WebdavConfig, 'users' | 'system_group'>;

/**
 * Those whom the proxy is told of with a password. Where users of the machine come in, whose passwords the daemon does
 * not have, it has an account of its own to look with.
 */
export function proxyUsers(
  { users, system_group: group }: Admitted,
  secrets: Secrets,
  own: ProxyUser,
): KnownUsers {
  const known = resolveUsers(users, secrets);
  return group === undefined ? known : { ...known, users: [...known.users, own] };
}

export interface LoginFacts {
  readonly settings: Admitted;
  /** Why users of the machine cannot come in, or not all. */
  readonly systemProblems: readonly string[];
  readonly config: Config;
  /** Those that are shown. */
  readonly shares: readonly string[];
  /** See `KnownUsers`. */
  readonly problems: readonly string[];
}

/** What is to be said of who can come in: everybody, or less than was meant. */
export function loginNotices({
  settings,
  systemProblems,
  config,
  shares,
  problems,
}: LoginFacts): readonly Notice[] {
  const { users } = settings;
  const isOpen = isOpenToAll(settings);
  const isNobodyKnown =
    users.length > 0 && problems.length >= users.length && settings.system_group === undefined;
  // Without users nobody can show that a share is theirs.
  const hidden = !isOpen ? [] : shares.filter((share) => shareAccess(config, share) !== undefined);
  return [
    ...(isOpen ? ['everybody who reaches its port is let in over WebDAV: add [[webdav.users]]'] : []),
    ...(isNobodyKnown ? ['nobody can log in over WebDAV: no user has a password that is known'] : []),
    ...hidden.map(
      (share) => `the share '${share}' names its users and WebDAV has none: nobody finds it there`,
    ),
    ...problems,
    ...systemProblems,
  ].map((message) => ({ level: 'warning', message }));
}
