import { definePlugin } from 'mountkeeper';
import type { Uploader } from 'mountkeeper';
import { check, finderFor } from './options/check.ts';
import { complete, schema, shareSchema } from './config.ts';
import { checks } from './doctor.ts';
import { createMounter } from './lifecycle/mounter.ts';
import type { RcloneMounter } from './lifecycle/mounter.ts';
import type { Notice } from './recovery/recovery-report.ts';
import { harmlessOptions } from './options/shown-options.ts';
import { checkUntrusted } from './options/over-http.ts';

const LOOK_FOR_LEFTOVERS_EVERY_MS = 60_000;

/** Not required of every daemon: without write layers none is needed. */
function uploaderOf(use: () => Uploader): Uploader {
  try {
    return use();
  } catch (cause) {
    throw new Error(
      'mount.write_layer needs the plugin uploads, which is not active; see `mountkeeper plugin list`',
      { cause },
    );
  }
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
    complete,
    check,
    checkUntrusted,
    harmless: harmlessOptions,
  },
  register(ctx) {
    const made: RcloneMounter[] = [];
    ctx.provide('mounter', () => {
      const mounter = createMounter({
        clock: ctx.use('clock'),
        log: ctx.log,
        processes: ctx.use('processes'),
        mountTable: ctx.use('mountTable'),
        mountReader: ctx.use('mountReader'),
        secrets: ctx.use('secrets'),
        paths: ctx.use('paths'),
        finder: finderFor(ctx.use('processes'), ctx.use('paths').stateDir),
        config: () => ctx.use('config').current.config,
        uploader: () => uploaderOf(() => ctx.use('uploader')),
      });
      made.push(mounter);
      return mounter;
    });
    ctx.tap('collectChecks', (config) =>
      checks(config, finderFor(ctx.use('processes')), ctx.use('mountTable'), ctx.use('processes')),
    );
    let notices: readonly Notice[] = [];
    ctx.every({
      name: 'look for files that go nowhere by themselves',
      ms: () => LOOK_FOR_LEFTOVERS_EVERY_MS,
      run: async () => {
        notices = (await made.at(-1)?.leftovers()) ?? [];
      },
    });
    ctx.tap('collectNotices', () => [...notices, ...(made.at(-1)?.unsafe() ?? [])]);
    ctx.effect('caches on their disks', () => async () => {
      await Promise.all(made.map((mounter) => mounter.settle()));
    });
    ctx.effect('mount points', () => async () => {
      await Promise.all(made.map((mounter) => mounter.unlock()));
    });
  },
});
