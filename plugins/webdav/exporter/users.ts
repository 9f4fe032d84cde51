import type { Secrets } from 'mountkeeper';
import type { WebdavUser } from '../config.ts';
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
