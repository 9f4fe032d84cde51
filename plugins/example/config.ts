import { duration, Joi } from 'mountkeeper';

export interface ExampleConfig {
  greeting: string;
  interval: string;
  schedule: string;
}

export const schema = Joi.object<ExampleConfig, true>({
  greeting: Joi.string().default('hello').meta({ tier: 'live' }).description('What the page says.'),
  interval: duration()
    .default('1m')
    .meta({ tier: 'live' })
    .description('How often it counts; "0" switches that off.'),
  schedule: Joi.string()
    .allow('')
    .default('')
    .meta({ tier: 'live' })
    .description('5-field cron expression on which it starts to count anew; empty: never.'),
});
