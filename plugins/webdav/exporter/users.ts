import { shareAccess } from 'mountkeeper';
import type { Config, Notice, Secrets } from 'mountkeeper';
import type { WebdavConfig, WebdavUser } from '../config.ts';
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

export interface LoginFacts {
  readonly settings: Pick<WebdavConfig, 'users'>;
  readonly config: Config;
  /** Those that are shown. */
  readonly shares: readonly string[];
  /** See `KnownUsers`. */
  readonly problems: readonly string[];
}

/** What is to be said of who can come in: everybody, or less than was meant. */
export function loginNotices({
  settings: { users },
  config,
  shares,
  problems,
}: LoginFacts): readonly Notice[] {
  const isNobodyKnown = users.length > 0 && problems.length >= users.length;
  // Without users nobody can show that a share is theirs.
  const hidden = users.length > 0 ? [] : shares.filter((share) => shareAccess(config, share) !== undefined);
  return [
    ...(users.length === 0
      ? ['everybody who reaches its port is let in over WebDAV: add [[webdav.users]]']
      : []),
    ...(isNobodyKnown ? ['nobody can log in over WebDAV: no user has a password that is known'] : []),
    ...hidden.map(
      (share) => `the share '${share}' names its users and WebDAV has none: nobody finds it there`,
    ),
    ...problems,
  ].map((message) => ({ level: 'warning', message }));
}
