import { definePlugin } from 'mountkeeper';
import { logsCommand } from './cli.ts';
import { routes } from './routes.ts';

export default definePlugin({
  name: 'logs',
  version: '1.0.0',
  apiVersion: 1,
  description: 'The daemon\'s log file over HTTP and on the command line.',
  register(ctx) {
    ctx.route(...routes(ctx));
    ctx.cli(logsCommand);
  },
});
