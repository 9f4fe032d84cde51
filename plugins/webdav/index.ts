import { definePlugin } from 'mountkeeper';
import { check, schema } from './config.ts';
import type { WebdavConfig } from './config.ts';
import { checks } from './doctor.ts';
import { WebdavExporter } from './exporter.ts';

const LOOK_MS = 3_000;

export default definePlugin<WebdavConfig>({
  name: 'webdav',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over WebDAV, each at /<name>/.',
  config: { section: 'webdav', schema, check },
  register(ctx) {
    let made: WebdavExporter | undefined;
    const exporter = (): WebdavExporter => {
      made ??= new WebdavExporter({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        secrets: ctx.use('secrets'),
        mountTable: ctx.use('mountTable'),
        paths: ctx.use('paths'),
        shares: ctx.use('shares'),
        settings: ctx.config,
        config: () => ctx.use('config').current.config,
      });
      return made;
    };
    ctx.provide('exporter:webdav', exporter);
    ctx.status('webdavRunning', () => made?.isServing === true);
    ctx.tap('collectNotices', () => exporter().notices());
    ctx.tap('collectChecks', (config) => checks(config));
    // The front comes up on its own time: shares need not wait for it.
    ctx.effect('WebDAV front', (signal) => {
      const opening = exporter().open().catch((error: unknown) => ctx.log.error({ err: error }, 'WebDAV front not brought up'));
      return async () => {
        await opening;
        await exporter().close(signal.reason === 'handover' || signal.reason === 'reload');
      };
    });
    ctx.every({ name: 'look at the WebDAV front', ms: () => (ctx.config.enabled ? LOOK_MS : 0), run: (signal) => exporter().look(signal) });
  },
});
