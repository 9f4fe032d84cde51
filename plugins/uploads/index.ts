import { definePlugin } from 'mountkeeper';
import { commands } from './cli.ts';
import { routes } from './routes.ts';
import { uploadsPanel } from './tab.ts';
import { createUploader } from './uploader.ts';
import type { RunningUploader } from './uploader.ts';

export default definePlugin({
  name: 'uploads',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'Brings what users write on the local disk to the remote; only what they saw is replaced there.',
  requires: ['processes', 'clock'],
  register(ctx) {
    let uploader: RunningUploader | undefined;
    ctx.provide('uploader', () => {
      uploader = createUploader({
        clock: ctx.use('clock'),
        processes: ctx.use('processes'),
        log: ctx.log,
        notify: (event) => ctx.send('notify', event),
      });
      return uploader;
    });
    const shares = (): RunningUploader['shares'] => uploader?.shares ?? new Map();
    ctx.route(...routes(shares, () => ctx.use('clock')));
    ctx.tab(uploadsPanel(shares, () => ctx.use('clock').now()));
    for (const command of commands) ctx.cli(command);
  },
});
