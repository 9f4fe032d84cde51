import { definePlugin } from 'mountkeeper';
import { Setup } from './service.ts';

export default definePlugin({
  name: 'setup',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'From the address of a NAS to a share on the LAN, in few answers: for the dashboard and the terminal.',
  requires: ['clock', 'configChanges', 'mounter'],
  register(ctx) {
    ctx.provide('setup', () => new Setup(ctx));
  },
});
