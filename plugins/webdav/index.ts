import { definePlugin, provideExporter, readDescriptions } from 'mountkeeper';
import { check, logins, schema } from './config.ts';
import type { WebdavConfig } from './config.ts';
import { checks } from './doctor.ts';
import { WebdavExporter } from './exporter/exporter.ts';

declare module 'mountkeeper' {
  interface StatusRecord {
    /** True while a client of WebDAV that may come in would be served. */
    webdavRunning: boolean;
  }
}

export default definePlugin<WebdavConfig>({
  name: 'webdav',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over WebDAV, each at /<name>/.',
  config: { section: 'webdav', schema, check, logins, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const exporter = provideExporter(ctx, {
      protocol: 'webdav',
      server: 'WebDAV proxy',
      isEnabled: () => ctx.config.enabled,
      make: (tools) => {
        let rclone = 'rclone';
        return new WebdavExporter({
          ...tools,
          secrets: ctx.use('secrets'),
          certificates: ctx.use('certificates'),
          settings: ctx.config,
          config: () => ctx.use('config').current.config,
          onRefused: (refused) => ctx.find('refusedSignIns')?.add('webdav', refused),
          // As last known while the plugin that mounts is being replaced.
          rclone: () => (rclone = ctx.find('rclone')?.command ?? rclone),
        });
      },
    });
    ctx.status('webdavRunning', { default: false, read: () => exporter()?.isServing === true });
    ctx.on('mount:rclone-replaced', ({ share }) => exporter()?.readAnew(share));
    ctx.tap('afterReload', () => exporter()?.realign());
    ctx.tap('collectChecks', (config) => checks(config, ctx.use('processes')));
  },
});
