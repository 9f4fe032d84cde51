import { definePlugin, html, Joi, readDescriptions, withRelease } from 'mountkeeper';
import { createCounter } from './counter.ts';
import { schema } from './config.ts';
import type { ExampleConfig } from './config.ts';

declare module 'mountkeeper' {
  interface Commands {
    count: { args: [steps: number]; result: void };
  }
  interface StatusRecord {
    exampleCount: number;
  }
  interface ShareStatus {
    /** When the share was mounted, in milliseconds since the epoch; null before that. */
    exampleMountedAt: number | null;
  }
}

const MORE = { action: 'more', label: { en: 'Count', zh: '加一' } };

/** Uses every verb of the contract once. */
export default definePlugin<ExampleConfig>({
  name: 'example',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows every verb of the plugin contract; good for copying.',
  enabledByDefault: false,
  requires: ['clock', 'status'],
  config: { schema, descriptions: readDescriptions(import.meta.url) },
  register(ctx) {
    const count = () => ctx.use('counter').value;

    ctx.provide('counter', () => withRelease(createCounter(), (counter) => counter.reset()));
    const mountedAt = ctx.effect('remember mounts', () =>
      withRelease(new Map<string, number>(), (times) => times.clear()),
    );
    ctx.tap('afterMount', (share) => void mountedAt()?.set(share, ctx.use('clock').now()));
    const counted = ctx.event({ name: 'example:counted', summary: 'It has counted.', value: Joi.number() });
    ctx.on('example:counted', (value) => ctx.log.debug({ value }, 'the example has heard itself'));
    ctx.handle('count', async (steps) => counted(ctx.use('counter').add(steps)));
    ctx.every({
      name: 'count',
      ms: () => ctx.use('counter').pauseMs(ctx.config.interval),
      run: () => ctx.send('count', 1),
    });
    ctx.job({
      name: 'start anew',
      cron: () => ctx.config.schedule,
      run: async () => ctx.use('counter').reset(),
    });

    ctx.tap('collectNotices', () =>
      count() > 1_000 ? [{ level: 'info', message: `The example has counted to ${String(count())}.` }] : [],
    );
    ctx.status('exampleCount', { default: 0, read: count });
    ctx.shareStatus({
      defaults: { exampleMountedAt: null },
      read: (share) => ({ exampleMountedAt: mountedAt()?.get(share) ?? null }),
    });
    ctx.metric({ name: 'mountkeeper_example_count', help: 'Steps counted by the example.', read: count });

    ctx.route({
      method: 'GET',
      path: '/example',
      handler: () => ({ greeting: ctx.config.greeting, count: count(), at: ctx.use('clock').now() }),
    });
    ctx.hapi(
      {
        name: 'example-header',
        register: (server) => {
          server.ext('onPreResponse', (request, h) => {
            if (request.path === '/example' && 'header' in request.response)
              request.response.header('x-example', 'yes');
            return h.continue;
          });
        },
      },
      {},
    );
    ctx.tab({
      id: 'example',
      title: { en: 'Example', zh: '示例' },
      texts: {
        en: { counted: '{count, plural, one {# step} other {# steps}} so far' },
        zh: { counted: '已数 {count} 步' },
      },
      actions: {
        more: async () => {
          await ctx.send('count', 1);
          return { ok: true, message: { en: 'Counted.', zh: '已加一。' } };
        },
      },
      render: (view) => html`<p>${view.t('counted', { count: count() })} ${view.button(MORE)}</p>`,
    });
    ctx.webhookFormat({ name: 'line', render: ({ event, host }) => ({ body: `${host}: ${event.message}` }) });
    ctx.cli({
      name: 'example',
      usage: '',
      summary: 'Show what the example has counted.',
      run: async (cli) => {
        cli.print((await cli.request('GET', '/example')).body);
        return 0;
      },
    });

    ctx.effect('listen to the status', () =>
      ctx.use('status').onPublish(() => void ctx.use('counter').add(1)),
    );
    ctx.effect(
      'say goodbye',
      (signal) => () => ctx.log.info({ reason: signal.reason as string }, 'example goes'),
    );
    ctx.onConfigChange((next, previous) =>
      ctx.log.info(
        { from: previous.greeting, to: next.greeting, ended: ctx.signal.aborted },
        'example greets anew',
      ),
    );
  },
});
