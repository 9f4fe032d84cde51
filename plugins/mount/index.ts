import { definePlugin, Joi, readDescriptions } from 'mountkeeper';
import type { Uploader } from 'mountkeeper';
import { check, finderFor } from './options/check.ts';
import { complete, schema, shareSchema } from './config.ts';
import { rcloneToRun } from './releases/chosen.ts';
import { outdatedNotices, QuietRenewal, SEE_CHOICE_EVERY_MS } from './releases/renewal.ts';
import { rcloneCommand } from './releases/cli.ts';
import { checks } from './doctor.ts';
import { NO_UPLOADER } from './layer/needs.ts';
import { createMounter } from './lifecycle/mounter.ts';
import { turnableMountPoints, turnableNotices } from './lifecycle/passage.ts';
import type { Notice } from './recovery/recovery-report.ts';
import { harmlessOptions } from './options/shown-options.ts';
import { checkUntrusted } from './options/untrusted-options.ts';

declare module 'mountkeeper' {
  interface Events {
    /** Another rclone lies below a share, which stayed mounted; `reason` says why the former one ended. */
    'mount:rclone-replaced': {
      readonly share: string;
      readonly reason: string;
    };
  }
}

const LOOK_FOR_LEFTOVERS_EVERY_MS = 60_000;

/** The plugin may be switched off. */
function needed(uploader: Uploader | undefined): Uploader {
  if (uploader) return uploader;
  throw new Error(NO_UPLOADER);
}

export default definePlugin({
  name: 'mount',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Mounts shares with rclone, each by a process and a cache of its own.',
  config: {
    section: 'mount',
    schema,
    share: shareSchema,
    descriptions: readDescriptions(import.meta.url),
    complete,
    check,
    checkUntrusted,
    harmless: harmlessOptions,
  },
  register(ctx) {
    ctx.provide('rclone', () => ({
      get command() {
        return rcloneToRun(ctx.config, ctx.use('paths').stateDir);
      },
    }));
    const replaced = ctx.event({
      name: 'mount:rclone-replaced',
      summary: 'Another rclone lies below a share, which stayed mounted.',
      value: Joi.object({
        share: Joi.string().required(),
        reason: Joi.string().allow('').required(),
      }),
    });
    const mounter = ctx.provide('mounter', () =>
      createMounter({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        mountTable: ctx.use('mountTable'),
        mountReader: ctx.use('mountReader'),
        secrets: ctx.use('secrets'),
        paths: ctx.use('paths'),
        finder: finderFor(ctx.use('processes'), ctx.use('paths').stateDir),
        config: () => ctx.use('config').current.config,
        connections: () => ctx.find('connections'),
        uploader: () => needed(ctx.find('uploader')),
        onReplaced: (share, reason) => replaced({ share, reason }),
        onElsewhere: (share) => void ctx.send('reconnect', share),
        onSent: (share) => void ctx.send('reconnect', share),
      }),
    );
    ctx.cli(rcloneCommand());
    ctx.tap('collectChecks', (config) =>
      checks(config, finderFor(ctx.use('processes')), ctx.use('mountTable'), ctx.use('processes')),
    );
    let notices: readonly Notice[] = [];
    ctx.every({
      name: 'look for files that go nowhere by themselves',
      ms: () => LOOK_FOR_LEFTOVERS_EVERY_MS,
      run: async () => {
        const up = ctx
          .use('shares')
          .list()
          .filter(({ mount }) => mount !== undefined);
        const said = await turnableMountPoints(
          up.map(({ spec }) => spec.share),
          ctx.use('processes'),
        );
        notices = [...((await mounter()?.leftovers()) ?? []), ...turnableNotices(said)];
      },
    });
    let outdated: readonly Notice[] = [];
    const renewal = new QuietRenewal({
      get clock() {
        return ctx.use('clock');
      },
      log: ctx.log,
      after: () => ctx.config.rclone_renew_after,
      shares: () => ctx.use('shares').list(),
      reconnect: (share) => ctx.send('reconnect', share),
    });
    ctx.every({
      name: 'see which rclone is chosen',
      ms: () => SEE_CHOICE_EVERY_MS,
      run: async () => {
        const mounts = (await mounter()?.outdated()) ?? [];
        outdated = outdatedNotices(mounts, ctx.config.rclone_renew_after);
        await renewal.look(mounts);
      },
    });
    ctx.tap('collectNotices', () => [...notices, ...outdated, ...(mounter()?.unsafe() ?? [])]);
    ctx.effect('caches on their disks', () => () => mounter()?.settle(ctx.signal.reason === 'shutdown'));
    ctx.effect('mount points', () => () => mounter()?.unlock());
  },
});
