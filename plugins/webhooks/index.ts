import { definePlugin } from 'mountkeeper';
import { webhookCommand } from './cli.ts';
import { checks, checkUntrusted, notices, schema } from './config.ts';
import type { WebhooksConfig } from './config.ts';
import { routes } from './routes.ts';
import { openService } from './service.ts';
import type { WebhookService } from './service.ts';
import { notificationsTab } from './tab.ts';

const LOOK_EVERY_MS = 1_000;

export default definePlugin<WebhooksConfig>({
  name: 'webhooks',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Delivers notifications over HTTP: signed, retried for hours, each once.',
  config: { section: 'notifications', schema, checkUntrusted },
  register(ctx) {
    let station: WebhookService | undefined;
    ctx.effect('deliver notifications', async () => {
      const opened = await openService(ctx);
      station = opened;
      return async () => {
        station = undefined;
        await opened.settled();
      };
    });
    ctx.every({
      name: 'send what is due',
      ms: () => LOOK_EVERY_MS,
      run: async () => void station?.outbox.work(),
    });
    ctx.handle('notify', async (event) => void station?.outbox.add(event));
    ctx.tap('afterCycle', (snapshot) => station?.statusEvents.look(snapshot));
    ctx.tap('shareHealthChanged', (change) => station?.statusEvents.healthChanged(change));
    ctx.tap('collectNotices', () => notices(ctx.config));
    ctx.tap('collectChecks', (config) => checks(config));
    const access = { outbox: () => station?.outbox, clock: () => ctx.use('clock'), signal: ctx.signal };
    ctx.route(...routes(access));
    ctx.tab(notificationsTab(access, () => ctx.config.webhook_url !== ''));
    ctx.cli(webhookCommand);
  },
});
