import { Joi } from 'mountkeeper';

export interface NasWatchConfig {
  nas_offline_minutes: number;
}

declare module 'mountkeeper' {
  /** Open: several plugins add keys to `[notifications]`. */
  interface NotificationsConfig {
    nas_offline_minutes: number;
  }
  interface Config {
    notifications: NotificationsConfig;
  }
}

export const schema = Joi.object<NasWatchConfig, true>({
  nas_offline_minutes: Joi.number()
    .integer()
    .min(0)
    .max(10_080)
    .default(5)
    .description(
      'Minutes that a NAS must be offline before a notification is sent; another follows when it is back. 0: none.',
    ),
}).meta({ tier: 'live' });
