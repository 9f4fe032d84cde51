import { definePlugin } from 'mountkeeper';
import { bwlimitCommand, reconnectCommand } from './cli-commands.ts';
import { statusCommand } from './cli-status.ts';
import { waitCommand } from './cli-wait.ts';
import { routes } from './routes.ts';

export default definePlugin({
  name: 'control-api',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Status, configuration and commands as JSON over HTTP, and the subcommands that use them.',
  register(ctx) {
    ctx.route(...routes(ctx));
    ctx.cli(statusCommand);
    ctx.cli(waitCommand);
    ctx.cli(reconnectCommand);
    ctx.cli(bwlimitCommand);
  },
});
