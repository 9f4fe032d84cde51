import { definePlugin, provideExporter } from 'mountkeeper';
import { check, schema } from './config.ts';
import type { WebdavConfig } from './config.ts';
import { checks } from './doctor.ts';
import { WebdavExporter } from './exporter/exporter.ts';

export default definePlugin<WebdavConfig>({
  name: 'webdav',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over WebDAV, each at /<name>/.',
  config: { section: 'webdav', schema, check },
  register(ctx) {
    const exporter = provideExporter(ctx, {
      protocol: 'webdav',
      server: 'WebDAV front',
      isEnabled: () => ctx.config.enabled,
      make: (tools) =>
        new WebdavExporter({
          ...tools,
          secrets: ctx.use('secrets'),
          settings: ctx.config,
          config: () => ctx.use('config').current.config,
        }),
    });
    ctx.status('webdavRunning', () => exporter()?.isServing === true);
    ctx.tap('collectChecks', (config) => checks(config));
  },
});
