/** What the compiler accepts and refuses of a plugin. Never run; every expected error must be one. */
import { definePlugin, Joi, withRelease } from 'mountkeeper';
import type { Mounter, Plugin, ShareStatus, StatusRecord } from 'mountkeeper';
import type {} from 'mountkeeper/plugins/nas-watch';
import type {} from 'mountkeeper/plugins/warmup';

declare module 'mountkeeper' {
  interface Services {
    typedLamp: { readonly color: string };
  }
  interface Commands {
    typedBlink: { args: [times: number]; result: void };
  }
  interface Events {
    'garden:watered': { readonly bed: string };
  }
  interface ShareStatus {
    typedMood?: string;
  }
}

interface GardenConfig {
  depth: number;
  name: string;
}

export const schema = Joi.object<GardenConfig, true>({ depth: Joi.number(), name: Joi.string() });
// @ts-expect-error a key of the interface is missing in the schema
export const short = Joi.object<GardenConfig, true>({ depth: Joi.number() });
// @ts-expect-error a key is of another kind than in the interface
export const wrong = Joi.object<GardenConfig, true>({ depth: Joi.string(), name: Joi.string() });

export const garden: Plugin<GardenConfig> = definePlugin<GardenConfig>({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'd',
  requires: ['mounter', 'typedLamp', 'exporter:smb'],
  config: { schema },
  register(ctx) {
    ctx.config.depth.toFixed();
    // @ts-expect-error the configuration has no such key
    void ctx.config.width;
    // @ts-expect-error the configuration is not the plugin's to change
    ctx.config.depth = 2;

    ctx.tap('beforeMount', (share) => (share === 'x' ? 'no' : undefined));
    ctx.tap(
      'afterMount',
      async (share) => {
        share.trim();
      },
      -1,
    );
    ctx.tap('resolveBandwidth', (budget) => ({ ...budget, up: budget.up / 2 }));
    // @ts-expect-error there is no such hook
    ctx.tap('afterLunch', () => undefined);
    // @ts-expect-error a veto gives a text
    ctx.tap('beforeMount', () => true);
    // @ts-expect-error a transformation gives a whole value
    ctx.tap('resolveBandwidth', (budget) => ({ up: budget.up }));
    // @ts-expect-error notices have a level
    ctx.tap('collectNotices', () => [{ message: 'm' }]);

    ctx.tap('collectShareTroubles', () => [{ share: 'photos', message: 'it is slow' }]);
    // @ts-expect-error a trouble is of a share
    ctx.tap('collectShareTroubles', () => [{ message: 'it is slow' }]);

    ctx.webhookFormat({ name: 'card', render: ({ event, host }) => ({ body: `${host} ${event.message}` }) });
    // @ts-expect-error a message has a body
    ctx.webhookFormat({ name: 'card', render: () => ({ headers: {} }) });

    const value = Joi.object<{ readonly bed: string }>({ bed: Joi.string().required() });
    const watered = ctx.event({ name: 'garden:watered', summary: 's', value });
    watered({ bed: 'roses' });
    // @ts-expect-error the value lacks its bed
    watered({});
    // @ts-expect-error there is no such event
    ctx.event({ name: 'garden:dug', summary: 's', value });
    ctx.on('garden:watered', ({ bed }) => void bed.trim());
    // @ts-expect-error there is no such event
    ctx.on('garden:dug', () => undefined);

    ctx.handle('typedBlink', async (times) => {
      times.toFixed();
    });
    // @ts-expect-error there is no such command
    ctx.handle('typedWink', async () => undefined);
    void ctx.send('typedBlink', 3);
    // @ts-expect-error the command takes a number
    void ctx.send('typedBlink', 'three');
    // @ts-expect-error an argument is missing
    void ctx.send('bwlimit');

    ctx.status('nasOffline', { default: false, read: () => true });
    ctx.status('nasOffline', () => true);
    // @ts-expect-error the field is a switch
    ctx.status('nasOffline', () => 'yes');
    // @ts-expect-error so is its default
    ctx.status('nasOffline', { default: 'no', read: () => true });
    // @ts-expect-error there is no such field
    ctx.status('nasLunch', () => true);
    // @ts-expect-error the field is the core's own
    ctx.status('allSynced', () => true);
    ctx.shareStatus((share) => ({ warmupDone: share.length, typedMood: 'good' }));
    ctx.shareStatus({
      defaults: { typedMood: 'dull', warmupState: 'none' },
      read: (share) => (share === 'x' ? { typedMood: 'good', warmupState: 'failed' } : {}),
    });
    // @ts-expect-error the figure is a number
    ctx.shareStatus(() => ({ warmupDone: 'many' }));
    // @ts-expect-error the field is the core's own
    ctx.shareStatus(() => ({ cacheBytes: 7 }));

    ctx.provide('typedLamp', () => ({ color: 'red' }));
    // @ts-expect-error the service looks otherwise
    ctx.provide('typedLamp', () => ({ volts: 230 }));
    const mounter: Mounter = ctx.use('mounter');
    void mounter.cached();
    void ctx.use('exporter:smb').remove('photos');
    // @ts-expect-error there is no such service
    ctx.use('kitchen');

    ctx.effect('held', () => () => undefined);
    ctx.effect('held', async (signal) => async () => {
      signal.throwIfAborted();
    });
    const made = ctx.effect('made', async () => withRelease({ depth: 3 }, (bed) => void bed.depth));
    made()?.depth.toFixed();
    const lamp = ctx.provide('typedLamp', () =>
      withRelease({ color: 'red', dim: () => undefined }, (one) => one.dim()),
    );
    lamp()?.dim();
    // @ts-expect-error before the plugin is up there is none
    lamp().dim();
    // @ts-expect-error an effect returns its release
    ctx.effect('leaky', () => undefined);
    ctx.every({ name: 'often', ms: () => 1_000, run: async () => undefined });
    // @ts-expect-error the time is read each time anew
    ctx.every({ name: 'often', ms: 1_000, run: async () => undefined });
    ctx.onConfigChange((next, previous) => next.depth - previous.depth);
  },
});

// @ts-expect-error written for another version of the contract
definePlugin({ name: 'a', version: '1.0.0', apiVersion: 2, description: 'd', register: () => undefined });
definePlugin({
  name: 'a',
  version: '1.0.0',
  apiVersion: 1,
  description: 'd',
  // @ts-expect-error requires names services
  requires: ['garden'],
  register: () => undefined,
});
// @ts-expect-error without a description nobody knows what it is for
definePlugin({ name: 'a', version: '1.0.0', apiVersion: 1, register: () => undefined });

export const record = (status: StatusRecord): readonly ShareStatus[] => status.shares;
// @ts-expect-error a published record is nobody's to change
export const change = (status: StatusRecord): unknown => status.shares.push();
