import { definePlugin } from 'mountkeeper';
import { schema } from './config.ts';
import type { NfsConfig } from './config.ts';
import { checks } from './doctor.ts';
import { NfsExporter } from './exporter.ts';

const LOOK_MS = 3_000;

export default definePlugin<NfsConfig>({
  name: 'nfs',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares over NFS 4 with a private NFS-Ganesha.',
  config: { section: 'nfs', schema },
  register(ctx) {
    let made: NfsExporter | undefined;
    const exporter = (): NfsExporter => {
      made ??= new NfsExporter({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        mountTable: ctx.use('mountTable'),
        paths: ctx.use('paths'),
        shares: ctx.use('shares'),
        owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
        settings: ctx.config,
      });
      return made;
    };
    ctx.provide('exporter:nfs', exporter);
    ctx.status('nfsExported', () => made?.isServing === true);
    ctx.tap('collectNotices', () => exporter().notices());
    ctx.tap('collectChecks', (config) => checks(config));
    // The server comes up on its own time: shares need not wait for it.
    ctx.effect('NFS server', (signal) => {
      const opening = exporter().open().catch((error: unknown) => ctx.log.error({ err: error }, 'NFS server not brought up'));
      return async () => {
        await opening;
        await exporter().close(signal.reason === 'handover' || signal.reason === 'reload');
      };
    });
    ctx.every({ name: 'look at the NFS server', ms: () => (ctx.config.enabled ? LOOK_MS : 0), run: (signal) => exporter().look(signal) });
  },
});
