import { isAbsolute } from 'node:path';
import { definePlugin, withRelease } from 'mountkeeper';
import { ShareTargets } from './targets.ts';

export default definePlugin({
  name: 'share-targets',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Keeps a systemd target up for each share that is up, for units that need the share.',
  requires: ['processes'],
  register(ctx) {
    const targets = ctx.effect('targets of shares', async (signal) => {
      // Set by the unit's RuntimeDirectory=: without it this is no service, or not this one.
      const runtimeDir = process.env['RUNTIME_DIRECTORY'] ?? '';
      if (!isAbsolute(runtimeDir)) return withRelease(undefined, () => undefined);
      const { log } = ctx;
      const made = new ShareTargets({
        clock: ctx.use('clock'),
        log,
        processes: ctx.use('processes'),
        runtimeDir,
      });
      // The mounts go on for the next daemon, and so does who uses them.
      const release = () =>
        signal.reason === 'handover' || signal.reason === 'reload' ? undefined : made.close();
      return withRelease(made, release);
    });
    // A share that is back before the next cycle was gone all the same: what used it has dead handles.
    ctx.tap('shareHealthChanged', ({ share, to, mounted }) => {
      if (to === 'healthy') targets()?.returned(share);
      // One that is mounted and cannot be listed just now has left nobody: handles stay good.
      else if (mounted !== true) void targets()?.left(share);
    });
    ctx.tap('afterCycle', ({ record: { shares } }) => {
      const mounted = shares.filter((share) => share.mounted);
      const up = mounted.filter(({ health }) => health === 'healthy');
      void targets()?.follow(
        up.map(({ name }) => name),
        mounted.map(({ name }) => name),
      );
    });
  },
});
