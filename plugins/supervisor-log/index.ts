import { join } from 'node:path';
import { CacheFills, createLatestQueue, definePlugin, withRelease } from 'mountkeeper';
import type { CacheFill } from 'mountkeeper';
import { CountChanges } from './count-changes.ts';
import { FillLevels } from './fill-levels.ts';
import type { Fill } from './fill-levels.ts';
import { readPassed, writePassed } from './saved-state.ts';
import { tellChange, tellPassing, tellSnapshot } from './reporter.ts';

const SNAPSHOT_EVERY_MS = 60_000;

function named(fills: readonly CacheFill[]): readonly Fill[] {
  return fills.map(({ share, ...fill }) => ({ name: share ?? '', ...fill }));
}

export default definePlugin({
  name: 'supervisor-log',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'Writes what happens to the shares into the log: figures every minute, full caches, changed counts.',
  requires: ['status'],
  register(ctx) {
    const told = ctx.effect('remember what was told', async () => {
      const file = join(ctx.use('paths').stateDir, 'supervisor-log', 'levels.json');
      const cache = () => ctx.use('config').current.config.cache;
      const fills = new CacheFills({ clock: ctx.use('clock'), cache });
      const levels = new FillLevels(await readPassed(file));
      const saving = createLatestQueue<FillLevels['passed']>((passed) =>
        writePassed(file, passed).catch((error: unknown) =>
          ctx.log.error({ err: error }, 'full caches that were told of are not saved'),
        ),
      );
      const save = (): void => void saving.push(levels.passed);
      return withRelease({ fills, levels, changes: new CountChanges(), save }, () => saving.idle());
    });
    ctx.tap('afterCycle', ({ record: { shares } }) => {
      const now = told();
      if (now === undefined) return;
      const passings = now.levels.look(named(now.fills.of(shares)));
      passings.forEach((passing) => tellPassing(ctx.log, passing));
      if (passings.length > 0) now.save();
      now.changes.look(shares, ctx.use('clock').monotonic()).forEach((change) => tellChange(ctx.log, change));
    });
    ctx.every({
      name: 'snapshot',
      ms: () => SNAPSHOT_EVERY_MS,
      run: async () => {
        const { shares } = ctx.use('status').snapshot.record;
        tellSnapshot(ctx.log, shares, named(told()?.fills.of(shares) ?? []));
      },
    });
  },
});
