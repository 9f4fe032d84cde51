import { definePlugin, Joi, readDescriptions } from 'mountkeeper';
import { commands } from './cli.ts';
import type { FileDownloads, LiveShare, Mount } from 'mountkeeper';
import { proofOf, shareSchema } from './config.ts';
import { receiptCommand } from './receipt-command.ts';
import { ReceiptJobs } from './proof/receipt-jobs.ts';
import { VerifyJobs } from './proof/verify-jobs.ts';
import { routes } from './routes.ts';
import { uploadsPanel } from './tab.ts';
import { createUploader } from './uploader.ts';
import type { RunningUploader } from './uploader.ts';

const VERSION = '1.0.0';

declare module 'mountkeeper' {
  interface StatusRecord {
    /** Shares whose uploads are paused, and when that ends (ISO 8601). */
    uploadPauses: Readonly<Record<string, string>>;
  }
}

export default definePlugin({
  name: 'uploads',
  version: VERSION,
  apiVersion: 1,
  description:
    'Brings what users write on the local disk to the remote; only what they saw is replaced there.',
  requires: ['processes', 'clock', 'shares'],
  config: { schema: Joi.object({}), share: shareSchema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const uploader = ctx.provide('uploader', () =>
      createUploader({
        clock: ctx.use('clock'),
        processes: ctx.use('processes'),
        log: ctx.log,
        notify: (event) => ctx.send('notify', event),
        proofOf: (share) => proofOf(ctx.use('config').current.config, share),
      }),
    );
    const shares = (): RunningUploader['shares'] => uploader()?.shares ?? new Map();
    const clock = () => ctx.use('clock');
    const liveOf = (share: string): LiveShare | undefined => ctx.use('shares').get(share);
    const mountOf = (share: string): Mount | undefined => liveOf(share)?.mount;
    const proofs = { receipt: new ReceiptJobs({ clock, version: VERSION }), verify: new VerifyJobs(clock) };
    ctx.route(
      ...routes(shares, clock, { ...proofs, mountOf, statsOf: (share) => liveOf(share)?.figures?.stats }),
    );
    ctx.status('uploadPauses', {
      default: {},
      read: () =>
        Object.fromEntries(
          ctx
            .use('shares')
            .list()
            .flatMap(({ spec, mount }) => {
              const until = mount?.uploadPause?.until;
              return until === undefined ? [] : [[spec.share.name, new Date(until).toISOString()]];
            }),
        ),
    });
    const isReadOnly = (share: string): boolean => liveOf(share)?.spec.share.read_only === true;
    const downloads = (): FileDownloads | undefined => ctx.find('fileDownloads');
    ctx.tab(uploadsPanel({ shares, mountOf, isReadOnly, clock, downloads, proofs }));
    for (const command of [...commands, receiptCommand]) ctx.cli(command);
  },
});
