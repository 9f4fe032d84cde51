import { join } from 'node:path';
import { definePlugin } from 'mountkeeper';
import { CacheFills } from './cache-fills.ts';
import { CountChanges } from './count-changes.ts';
import { FillLevels } from './fill-levels.ts';
import { readPassed, writePassed } from './saved-state.ts';
import { tellChange, tellPassing, tellSnapshot } from './reporter.ts';

const SNAPSHOT_EVERY_MS = 60_000;

export default definePlugin({
  name: 'supervisor-log',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'Writes what happens to the shares into the log: figures every minute, full caches, changed counts.',
  requires: ['status'],
  register(ctx) {
    let levels = new FillLevels();
    let changes = new CountChanges();
    let fills: CacheFills | undefined;
    let saving: Promise<void> = Promise.resolve();
    const file = (): string => join(ctx.use('paths').stateDir, 'supervisor-log', 'levels.json');
    const save = (): void => {
      const { passed } = levels;
      saving = saving
        .then(() => writePassed(file(), passed))
        .catch((error: unknown) =>
          ctx.log.error({ err: error }, 'full caches that were told of are not saved'),
        );
    };
    ctx.effect('remember what was told', async () => {
      levels = new FillLevels(await readPassed(file()));
      changes = new CountChanges();
      fills = new CacheFills({
        clock: ctx.use('clock'),
        cache: () => ctx.use('config').current.config.cache,
      });
      return async () => {
        fills = undefined;
        await saving;
      };
    });
    ctx.tap('afterCycle', ({ record: { shares } }) => {
      const passings = fills === undefined ? [] : levels.look(fills.of(shares));
      passings.forEach((passing) => tellPassing(ctx.log, passing));
      if (passings.length > 0) save();
      changes.look(shares, ctx.use('clock').monotonic()).forEach((change) => tellChange(ctx.log, change));
    });
    ctx.every({
      name: 'snapshot',
      ms: () => SNAPSHOT_EVERY_MS,
      run: async () => {
        const { shares } = ctx.use('status').snapshot.record;
        tellSnapshot(ctx.log, shares, fills?.of(shares) ?? []);
      },
    });
  },
});
