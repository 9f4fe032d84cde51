import { definePlugin, provideExporter, readDescriptions } from 'mountkeeper';
import { clientWarnings } from './client-warnings.ts';
import { schema, shareSchema } from './config.ts';
import type { NfsConfig } from './config.ts';
import { checks } from './doctor.ts';
import { createNfsExporter } from './exporter.ts';

declare module 'mountkeeper' {
  interface StatusRecord {
    /** True while a client of NFS would be served. */
    nfsExported: boolean;
  }
}

export default definePlugin<NfsConfig>({
  name: 'nfs',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over NFS 4 with a private NFS-Ganesha.',
  config: {
    section: 'nfs',
    schema,
    share: shareSchema,
    check: clientWarnings,
    descriptions: readDescriptions(import.meta.url),
  },
  register(ctx) {
    const exporter = provideExporter(ctx, {
      protocol: 'nfs',
      server: 'NFS server',
      isEnabled: () => ctx.config.enabled,
      make: (tools) =>
        createNfsExporter({
          ...tools,
          owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
          settings: ctx.config,
          config: () => ctx.use('config').current.config,
        }),
    });
    ctx.status('nfsExported', { default: false, read: () => exporter()?.isServing === true });
    ctx.tap('afterReload', () => exporter()?.realign());
    ctx.tap('collectChecks', (config) => checks(config));
  },
});
