import { duration, Joi } from 'mountkeeper';

export interface AdaptiveBandwidthConfig {
  adaptive: boolean;
  adaptive_interval: string;
}

declare module 'mountkeeper' {
  interface BandwidthConfig {
    adaptive: boolean;
    adaptive_interval: string;
  }
}

export const schema = Joi.object<AdaptiveBandwidthConfig, true>({
  adaptive: Joi.boolean()
    .default(false)
    .description(
      'Lowers the upload limit while the line is congested and raises it again, up to bandwidth.up, ' +
        'while uploads stay below it.',
    ),
  adaptive_interval: duration({ min: '1s', max: '10m' })
    .default('10s')
    .description('Time over which uploads are measured for one sample; the limit is judged by the last six.'),
}).meta({ tier: 'live' });
