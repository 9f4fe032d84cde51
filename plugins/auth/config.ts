import { Joi, secret } from 'mountkeeper';
import type { Secret } from 'mountkeeper';

export interface AuthConfig {
  username: string;
  password: Secret;
}

declare module 'mountkeeper' {
  interface WebConfig {
    username: string;
    password: Secret;
  }
}

export const schema = Joi.object<AuthConfig, true>({
  username: Joi.string()
    .pattern(/^[^:\x00-\x1f\x7f]{1,128}$/)
    .default('admin')
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 128 characters without a colon' })
    .description('User name for the dashboard and the API.'),
  password: secret()
    .default('')
    .description(
      'Password for the dashboard and the API: the text itself, a hash made by "mountkeeper ' +
        'hash-password", or { env = "NAME" }, { file = "/path" } or { credential = "name" }. Empty: ' +
        'nobody is asked.',
    ),
}).meta({ tier: 'live' });
