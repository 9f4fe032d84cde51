import { definePlugin, provideExporter, readDescriptions } from 'mountkeeper';
import { check, logins, schema } from './config.ts';
import type { SmbConfig } from './config.ts';
import { checks } from './doctor.ts';
import { createSmbExporter } from './exporter.ts';

declare module 'mountkeeper' {
  interface StatusRecord {
    /** True while a client of SMB that may come in would be served. */
    smbdRunning: boolean;
  }
}

export default definePlugin<SmbConfig>({
  name: 'smb',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over SMB with a private Samba server.',
  config: { section: 'smb', schema, check, logins, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const exporter = provideExporter(ctx, {
      protocol: 'smb',
      server: 'SMB server',
      isEnabled: () => ctx.config.enabled,
      make: (tools) =>
        createSmbExporter({
          ...tools,
          secrets: ctx.use('secrets'),
          owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
          settings: ctx.config,
          config: () => ctx.use('config').current.config,
          onRefused: (refused) => ctx.find('refusedSignIns')?.add('smb', refused),
        }),
    });
    ctx.status('smbdRunning', { default: false, read: () => exporter()?.isServing === true });
    ctx.tap('collectChecks', (config) => checks(config, ctx.use('processes')));
    ctx.tap('afterReload', () => exporter()?.realign());
  },
});
