import { definePlugin } from 'mountkeeper';
import { benchCommand } from './bench/command.ts';
import { presetCommand } from './cli.ts';
import { presets } from './profiles.ts';
import { routes } from './routes.ts';

export default definePlugin({
  name: 'presets',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Mount parameters for photographers, video and office work in one step.',
  register(ctx) {
    ctx.provide('configPresets', () => ({ list: presets }));
    ctx.route(...routes(ctx));
    ctx.cli(presetCommand);
    ctx.cli(benchCommand);
  },
});
