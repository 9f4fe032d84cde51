import { definePlugin } from 'mountkeeper';
import { logsCommand } from './cli.ts';
import { createLogFile } from './log-file.ts';
import { routes } from './routes.ts';
import { logsTab } from './tab.ts';

export default definePlugin({
  name: 'logs',
  version: '1.0.0',
  apiVersion: 1,
  description: "The daemon's log file over HTTP and on the command line.",
  register(ctx) {
    const file = createLogFile(
      () => ctx.use('logFile'),
      () => ctx.use('config').current.config,
    );
    ctx.route(...routes(file));
    ctx.tab(logsTab(ctx, file));
    ctx.cli(logsCommand);
  },
});
