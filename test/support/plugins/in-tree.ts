/** The plugins that come with the package, as a daemon finds them. */
import { pino } from 'pino';
import { discoverPlugins } from '../../../core/plugins/discovery/discover.ts';
import type { FoundPlugin } from '../../../core/plugins/discovery/found.ts';
import { IN_TREE_PLUGINS } from '../../../core/platform/package.ts';

/** Declared, not started. */
export function inTreePlugins(): Promise<readonly FoundPlugin[]> {
  return discoverPlugins({
    inTree: IN_TREE_PLUGINS,
    thirdPartyDirs: [],
    stateDir: '/nowhere',
    log: pino({ level: 'silent' }),
    importMs: 60_000,
  });
}
