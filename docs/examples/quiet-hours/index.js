import { definePlugin, Joi, rate, rateBytes } from 'mountkeeper';
import { quietTime } from './schedule.js';

const rule = Joi.object({
  shares: Joi.array().items(Joi.string()).min(1).required().description('Names of the shares.'),
  from: Joi.string().required().description('When the quiet begins: a cron expression with five fields.'),
  to: Joi.string().required().description('When it ends: a cron expression.'),
  up: rate().default('0').description('Upload of each of these shares meanwhile; "0" is no limit.'),
  down: rate().default('0').description('Download of each of these shares meanwhile; "0" is no limit.'),
});

/** What the configuration says, with the reason where a rule cannot be read. */
function readRules({ rules, timezone }) {
  return rules.map((one) => {
    const { shares, from, to, up, down } = one;
    const limit = { up: rateBytes(up), down: rateBytes(down) };
    try {
      return { shares, limit, isQuiet: quietTime({ from, to, timezone }) };
    } catch (error) {
      return { shares, limit, isQuiet: () => false, problem: error.message };
    }
  });
}

export default definePlugin({
  name: 'quiet-hours',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Slows single shares down at certain times.',
  requires: ['clock'],
  config: {
    schema: Joi.object({
      timezone: Joi.string()
        .allow('')
        .default('')
        .meta({ tier: 'live' })
        .description('Time zone, such as "Europe/Berlin"; left out, that of the machine.'),
      rules: Joi.array().items(rule).default([]).meta({ tier: 'live' }).description('Who is slow, and when.'),
    }),
  },
  register(ctx) {
    let known;
    const rules = () => {
      if (known?.of !== ctx.config) known = { of: ctx.config, rules: readRules(ctx.config) };
      return known.rules;
    };
    const quietRules = () => rules().filter(({ isQuiet }) => isQuiet(ctx.use('clock').now()));

    ctx.tap('collectShareLimits', () =>
      quietRules().flatMap(({ shares, limit }) => shares.map((share) => ({ share, ...limit }))),
    );
    ctx.tap('collectNotices', () =>
      rules().flatMap(({ shares, problem }) =>
        problem === undefined
          ? []
          : [
              {
                level: 'error',
                message: `The quiet hours of ${shares.join(', ')} cannot be read: ${problem}`,
              },
            ],
      ),
    );
    ctx.status('quietShares', { default: [], read: () => quietRules().flatMap(({ shares }) => shares) });
  },
});
