/** Changes that were accepted and written, but take effect only when the daemon is started again. */
import type { ConfigDiff } from '../contract/config.ts';
import type { Notice } from '../contract/notifications.ts';

/** `sinceStart`: the difference between the configuration at the daemon's start and the running one. */
export function restartNotice({ changes }: ConfigDiff): Notice | undefined {
  const paths = changes.filter(({ tier }) => tier === 'restart').map(({ path }) => path);
  if (paths.length === 0) return undefined;
  return {
    level: 'info',
    message: `${paths.join(', ')}: changed in the configuration, to hold from the next start of the daemon on`,
  };
}
