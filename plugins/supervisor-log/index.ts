import { definePlugin } from 'mountkeeper';
import { CacheFills } from './cache-fills.ts';
import { CountChanges } from './count-changes.ts';
import { FillLevels } from './fill-levels.ts';
import { tellChange, tellPassing, tellSnapshot } from './teller.ts';

const SNAPSHOT_EVERY_MS = 60_000;

export default definePlugin({
  name: 'supervisor-log',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Writes what happens to the shares into the log: figures every minute, full caches, changed counts.',
  requires: ['status'],
  register(ctx) {
    let levels = new FillLevels();
    let changes = new CountChanges();
    let fills: CacheFills | undefined;
    ctx.effect('remember what was told', () => {
      levels = new FillLevels();
      changes = new CountChanges();
      fills = new CacheFills({ clock: ctx.use('clock'), cache: () => ctx.use('config').current.config.cache });
      return () => { fills = undefined; };
    });
    ctx.tap('afterCycle', ({ record: { shares } }) => {
      levels.look(fills?.of(shares) ?? []).forEach((passing) => tellPassing(ctx.log, passing));
      changes.look(shares, ctx.use('clock').monotonic()).forEach((change) => tellChange(ctx.log, change));
    });
    ctx.every({
      name: 'snapshot', ms: () => SNAPSHOT_EVERY_MS,
      run: async () => {
        const { shares } = ctx.use('status').snapshot.record;
        tellSnapshot(ctx.log, shares, fills?.of(shares) ?? []);
      },
    });
  },
});
