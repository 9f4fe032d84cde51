import { definePlugin } from 'mountkeeper';
import { check, schema } from './config.ts';
import type { SmbConfig } from './config.ts';
import { checks } from './doctor.ts';
import { SmbExporter } from './exporter.ts';

const LOOK_MS = 3_000;

export default definePlugin<SmbConfig>({
  name: 'smb',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over SMB with a private Samba server.',
  config: { section: 'smb', schema, check },
  register(ctx) {
    let made: SmbExporter | undefined;
    const exporter = (): SmbExporter => {
      made ??= new SmbExporter({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        secrets: ctx.use('secrets'),
        mountTable: ctx.use('mountTable'),
        paths: ctx.use('paths'),
        shares: ctx.use('shares'),
        owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
        settings: ctx.config,
        config: () => ctx.use('config').current.config,
      });
      return made;
    };
    ctx.provide('exporter:smb', exporter);
    ctx.status('smbdRunning', () => made?.isServing === true);
    ctx.tap('collectNotices', () => exporter().notices());
    ctx.tap('collectChecks', (config) => checks(config, ctx.use('processes')));
    ctx.tap('afterReload', () => exporter().realign());
    // The server comes up on its own time: shares need not wait for it.
    ctx.effect('SMB server', (signal) => {
      const opening = exporter().open().catch((error: unknown) => ctx.log.error({ err: error }, 'SMB server not brought up'));
      return async () => {
        await opening;
        await exporter().close(signal.reason === 'handover' || signal.reason === 'reload');
      };
    });
    ctx.every({ name: 'look at the SMB server', ms: () => (ctx.config.enabled ? LOOK_MS : 0), run: (signal) => exporter().look(signal) });
  },
});
