import { definePlugin } from 'mountkeeper';
import { importCommand, initCommand } from './commands.ts';
import { routes } from './routes.ts';
import { Setup } from './service.ts';

export default definePlugin({
  name: 'setup',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'From the address of a NAS to a share on the LAN, in few answers: for the dashboard and the terminal.',
  requires: ['clock', 'configChanges', 'mounter', 'processes'],
  register(ctx) {
    ctx.provide(
      'setup',
      () =>
        new Setup({
          clock: () => ctx.use('clock'),
          config: () => ctx.use('config'),
          mounter: () => ctx.use('mounter'),
          changes: () => ctx.use('configChanges'),
          run: (command) => ctx.use('processes').run(command),
          signal: ctx.signal,
        }),
    );
    ctx.route(...routes(ctx));
    ctx.cli(initCommand);
    ctx.cli(importCommand);
  },
});
