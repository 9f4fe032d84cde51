import { duration, Joi } from 'mountkeeper';

export interface ProbeConfig {
  timeout: string;
}

declare module 'mountkeeper' {
  interface Config {
    probe: ProbeConfig;
  }
}

export const schema = Joi.object<ProbeConfig, true>({
  timeout: duration({ min: '100ms' })
    .default('10s')
    .description('How long a remote path may take to be listed before its share counts as failed.'),
}).meta({ tier: 'live' });
