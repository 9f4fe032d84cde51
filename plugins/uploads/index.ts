import { definePlugin, Joi, readDescriptions } from 'mountkeeper';
import { commands } from './cli.ts';
import { proofOf, shareSchema } from './config.ts';
import { receiptCommand } from './receipt-command.ts';
import { ReceiptJobs } from './proof/receipt-jobs.ts';
import { VerifyJobs } from './proof/verify-jobs.ts';
import { routes } from './routes.ts';
import { uploadsPanel } from './tab.ts';
import { createUploader } from './uploader.ts';
import type { RunningUploader } from './uploader.ts';

const VERSION = '1.0.0';

export default definePlugin({
  name: 'uploads',
  version: VERSION,
  apiVersion: 1,
  description:
    'Brings what users write on the local disk to the remote; only what they saw is replaced there.',
  requires: ['processes', 'clock'],
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
    ctx.route(
      ...routes(shares, clock, {
        receipt: new ReceiptJobs({ clock, version: VERSION }),
        verify: new VerifyJobs(clock),
      }),
    );
    ctx.tab(uploadsPanel(shares, () => ctx.use('clock').now()));
    for (const command of [...commands, receiptCommand]) ctx.cli(command);
  },
});
