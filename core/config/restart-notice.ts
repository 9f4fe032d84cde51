/**
 * Changes that are accepted, stand in the configuration, and do not hold before the daemon is started again.
 */
import type { ConfigDiff } from '../contract/config.ts';
import type { Notice } from '../contract/notifications.ts';

/** `sinceStart`: from the configuration that the daemon was started with to the running one. */
export function restartNotice({ changes }: ConfigDiff): Notice | undefined {
  const paths = changes.filter(({ tier }) => tier === 'restart').map(({ path }) => path);
  if (paths.length === 0) return undefined;
  return {
    level: 'info',
    message: `${paths.join(', ')}: changed in the configuration, to hold from the next start of the daemon on`,
  };
}
