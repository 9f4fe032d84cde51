import { definePlugin, Joi, secret, withRelease } from 'mountkeeper';
import { openOutbox } from './outbox.js';

const SEVERITIES = ['info', 'warning', 'error'];

export default definePlugin({
  name: 'matrix',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Tells a Matrix room what people should hear of.',
  requires: ['clock', 'store', 'secrets'],
  config: {
    schema: Joi.object({
      // The token is sent there: nobody without a shell may name another place.
      homeserver: Joi.string()
        .pattern(/^https?:\/\/\S+$/)
        .allow('')
        .default('')
        .meta({ tier: 'live', fileOnly: true })
        .description('Address of the homeserver, such as "https://matrix.example.org".'),
      room: Joi.string()
        .pattern(/^!/)
        .allow('')
        .default('')
        .meta({ tier: 'live' })
        .description('Id of the room, such as "!abc:example.org"; the token\'s user must have joined it.'),
      token: secret().default('').meta({ tier: 'live' }).description("Access token of the plugin's user."),
      least: Joi.valid(...SEVERITIES)
        .default('warning')
        .meta({ tier: 'live' })
        .description('Least severity that is told: "info", "warning" or "error".'),
    }),
  },
  register(ctx) {
    const outbox = ctx.effect('letters to the room', async (signal) =>
      withRelease(await openOutbox(ctx, signal), (opened) => opened.close()),
    );

    ctx.tap('notification', async (event) => {
      if (SEVERITIES.indexOf(event.severity) >= SEVERITIES.indexOf(ctx.config.least))
        await outbox()?.add(event);
    });
    ctx.every({ name: 'send what is due', ms: () => 500, run: async (signal) => outbox()?.sendDue(signal) });
    ctx.tap('collectNotices', () => {
      const { homeserver, room, token } = ctx.config;
      const isSet = [homeserver, room, token].every((value) => value !== '');
      const problem = isSet ? outbox()?.problem : 'homeserver, room and token must be set';
      return problem === undefined ? [] : [{ level: 'warning', message: `Matrix is not told: ${problem}` }];
    });
    ctx.status('matrixWaiting', { default: 0, read: () => outbox()?.waiting ?? 0 });
  },
});
