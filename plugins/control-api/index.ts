import { definePlugin } from 'mountkeeper';
import { bwlimitCommand, reconnectCommand } from './cli-commands.ts';
import { statusCommand } from './cli-status.ts';
import { waitCommand } from './cli-wait.ts';
import { Changes } from './config/changes.ts';
import { History } from './config/history.ts';
import { routes } from './routes.ts';

export default definePlugin({
  name: 'control-api',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Status, configuration and commands as JSON over HTTP, and the subcommands that use them.',
  requires: ['clock', 'paths', 'status'],
  register(ctx) {
    const changes = ctx.provide(
      'configChanges',
      () => new Changes(ctx, new History(ctx.use('paths').stateDir, ctx.log)),
    );
    ctx.effect('keep what was applied', async () => {
      // Held here: a release that comes late finds the verb's own function empty.
      const made = changes();
      await made?.open();
      return () => made?.close();
    });
    ctx.tap('afterReload', () => void changes()?.sync());
    ctx.tap('collectNotices', () => changes()?.notices() ?? []);
    ctx.route(...routes(ctx));
    ctx.cli(statusCommand);
    ctx.cli(waitCommand);
    ctx.cli(reconnectCommand);
    ctx.cli(bwlimitCommand);
  },
});
