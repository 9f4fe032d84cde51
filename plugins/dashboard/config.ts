/** The dashboard's configuration keys. */
import { Joi } from 'mountkeeper';

export interface DashboardConfig {
  status_page: boolean;
}

export const schema = Joi.object<DashboardConfig, true>({
  status_page: Joi.boolean()
    .default(false)
    .description(
      'A page at /status for a screen on the wall: the sentence and the shares, and nothing to press. ' +
        'Behind the password as all others.',
    ),
}).meta({ tier: 'live' });
