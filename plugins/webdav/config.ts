import { Joi, secret, tls } from 'mountkeeper';
import type { Config, ConfigProblem, Logins, Secret, TlsConfig } from 'mountkeeper';
import { plainHttpAdvice } from './exporter/certificate.ts';

export interface WebdavUser {
  name: string;
  password: Secret;
}

export interface WebdavConfig {
  enabled: boolean;
  port: number;
  listen: string;
  users: WebdavUser[];
  /** Members of this group of the machine may log in, too. Left out: nobody. */
  system_group?: string;
  /** The port speaks TLS alone. Left out: plain HTTP. */
  tls?: TlsConfig;
  /** Passwords of other machines are taken over plain HTTP, too. */
  plain_http?: boolean;
}

declare module 'mountkeeper' {
  interface Config {
    webdav: WebdavConfig;
  }
}

const user = Joi.object<WebdavUser, true>({
  name: Joi.string()
    .pattern(/^[^:\x00-\x1f\x7f]{1,64}$/)
    .required()
    .example('alice')
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 64 characters without a colon' })
    .description('Name that the user logs in with.'),
  password: secret()
    .required()
    .example({ file: '/etc/mountkeeper/alice' })
    .description(
      'The user\'s password: the text itself, or { env = "NAME" }, { file = "/path" } or { credential = "name" }.',
    ),
});

export const schema = Joi.object<WebdavConfig, true>({
  enabled: Joi.boolean().default(false).description('Show the shares over WebDAV, each at /<name>/.'),
  port: Joi.number().integer().min(1).max(65_535).default(8091).description('TCP port.'),
  listen: Joi.string()
    .ip({ cidr: 'forbidden' })
    .messages({
      'string.ip': '{{#label}} must be an address',
      'string.ipVersion': '{{#label}} must be an address',
    })
    .default('127.0.0.1')
    .meta({ names: 'address' })
    .description('Address to listen on; "0.0.0.0" or "::" is all of them.'),
  users: Joi.array()
    .items(user)
    .max(1_000)
    .default([])
    .unique('name')
    .meta({ entry: true })
    .description('Who may log in. With no user at all, and no webdav.system_group, everybody is let in.'),
  system_group: Joi.string()
    .pattern(/^[^\s\-:,][^:,\x00-\x1f\x7f]{0,63}$/)
    .optional()
    .example('mountkeeper-users')
    .messages({ 'string.pattern.base': '{{#label}} must be the name of a group of this machine' })
    .meta({ fileOnly: true, entry: true })
    .description(
      'Members of this group of the machine may log in, too, by their own passwords, which PAM checks (apt install ' +
        'pwauth). Never root or accounts of services. Left out: those of webdav.users alone.',
    ),
  tls: tls().description('Speak TLS, and nothing else, on this port. Left out: plain HTTP.'),
  plain_http: Joi.boolean()
    .optional()
    .example(false)
    .meta({ fileOnly: true })
    .description(
      'Without TLS, take passwords from other machines, too, though everybody on the way can read them. Left out: ' +
        'over plain HTTP they are taken from this machine and from web.trusted_proxies alone.',
    ),
}).meta({ tier: 'protocol' });

/** Checks that a schema cannot make. */
export function check(config: Config): readonly ConfigProblem[] {
  const { webdav } = config;
  const advice = webdav.enabled && !webdav.plain_http ? plainHttpAdvice(config) : undefined;
  const warnings = advice === undefined ? [] : [{ path: 'webdav.listen', message: advice, isWarning: true }];
  const problems = webdav.users.flatMap((one, index) =>
    one.password === ''
      ? [
          {
            path: `webdav.users[${index}].password`,
            message: `the password of the user "${one.name}" is empty; set one`,
          },
        ]
      : [],
  );
  return [...problems, ...warnings];
}

export function logins({ webdav }: Config): Logins {
  return {
    names: webdav.users.map(({ name }) => name),
    ignoresCase: false,
    hasOthers: webdav.system_group !== undefined,
  };
}
