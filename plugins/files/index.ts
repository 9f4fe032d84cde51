import { definePlugin } from 'mountkeeper';
import { downloadAddress, downloadRoute, isOffered } from './download/route.ts';
import { filesPanel } from './panel.ts';

export default definePlugin({
  name: 'files',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows the files of a share on its page, and which of them lie in the cache.',
  requires: ['processes', 'shares', 'plugins', 'clock'],
  register(ctx) {
    ctx.tab(filesPanel(ctx));
    ctx.route(downloadRoute(ctx));
    ctx.provide('fileDownloads', () => ({
      address: (share, path) => (isOffered(ctx) ? downloadAddress(share, path) : undefined),
    }));
  },
});
