import { definePlugin } from 'mountkeeper';
import { createUploader } from './uploader.ts';

export default definePlugin({
  name: 'uploads',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Brings what users write on the local disk to the remote: only what they saw is replaced, nothing is lost.',
  requires: ['processes', 'clock'],
  register(ctx) {
    ctx.provide('uploader', () => createUploader({
      clock: ctx.use('clock'), processes: ctx.use('processes'), log: ctx.log, notify: (event) => ctx.send('notify', event),
    }));
  },
});
