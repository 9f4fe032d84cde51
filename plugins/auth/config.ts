import { isAnybodyAsked, isLoopback, Joi, secret } from 'mountkeeper';
import type { Config, ConfigProblem, Role, Secret, Services, Verb } from 'mountkeeper';
import { administratorProblems } from './administrators.ts';
import { switchedOffProblems } from './exposure.ts';
import { parseHash } from './password-hash.ts';
import { TOKEN_HASH } from './token.ts';
import { tokenWarnings } from './token-warnings.ts';
import { keyOf } from './totp/totp.ts';

/** In place of the text of the type `Role`, which is gone at run time. */
export const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];
/** The same for `Verb`. */
export const VERBS: readonly Verb[] = [
  'status',
  'metrics',
  'logs',
  'reconnect',
  'refresh',
  'warmup',
  'bandwidth',
  'queue',
  'upload',
  'proof',
  'webhooks',
  'config',
  'files',
  'sessions',
];

export interface WebUser {
  name: string;
  password_hash: string;
  role: Role;
  /** Absent or empty: no codes. */
  totp_secret?: Secret;
}

/** Either `role` or `verbs`. Without `shares` it is for all; `expires` is in ISO 8601. */
export interface WebToken {
  name: string;
  token_hash: string;
  role?: Role;
  verbs?: Verb[];
  shares?: string[];
  expires?: string;
}

export interface AuthConfig {
  username: string;
  password: Secret;
  totp_secret: Secret;
  users: WebUser[];
  tokens: WebToken[];
}

declare module 'mountkeeper' {
  interface WebConfig {
    username: string;
    password: Secret;
    totp_secret: Secret;
    users: WebUser[];
    tokens: WebToken[];
  }
}

const MOST = 500;
/** Without a colon, which HTTP Basic cannot carry in a name. */
const NAME = /^[^:\x00-\x1f\x7f]{1,128}$/;
const NAME_PROBLEM = { 'string.pattern.base': '{{#label}} must be 1 to 128 characters without a colon' };
/** A list that was emptied must not come to mean everything. */
const EMPTIED = { 'array.min': '{{#label}} is empty; leave the key out, or take the whole token away' };

export const tokenName = Joi.string()
  .pattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  .messages({
    'string.pattern.base':
      '{{#label}} must be 1 to 64 letters, digits, ".", "_" or "-", and begin with a letter or digit',
  });

/** As names are compared at the door. Also asked about entries that are none. */
const hasSameName = (one: unknown, other: unknown): boolean => {
  const [name, twin] = [one, other].map((user) => (user as Partial<WebUser> | null)?.name);
  return typeof name === 'string' && typeof twin === 'string' && name.normalize() === twin.normalize();
};

const TOTP =
  'Secret of the one-time codes that are asked for beside the password, as "mountkeeper totp new" prints it, or a ' +
  'reference to it. Basic and the command line over an address are refused then; programs take tokens.';

const user = Joi.object<WebUser, true>({
  name: Joi.string()
    .pattern(NAME)
    .required()
    .example('anna')
    .messages(NAME_PROBLEM)
    .description('Name that the user signs in with.'),
  password_hash: Joi.string()
    .required()
    .custom((text: string, helpers) => (parseHash(text) ? text : helpers.error('any.custom')))
    .messages({ 'any.custom': '{{#label}} is no hash that "mountkeeper hash-password" prints' })
    .meta({ type: 'secret', secret: true })
    .example(`scrypt$16384$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`)
    .description('Hash of the password, as "mountkeeper hash-password" prints it.'),
  role: Joi.string()
    .valid(...ROLES)
    .required()
    .example('viewer')
    .description(
      'What the user may do: "viewer" looks, "operator" also works the shares, "admin" does everything.',
    ),
  totp_secret: secret().optional().description(TOTP),
});

const token = Joi.object<WebToken, true>({
  name: tokenName.required().example('backup').description('Name of the token, for the log and for you.'),
  token_hash: Joi.string()
    .pattern(TOKEN_HASH)
    .required()
    .example(`sha256$${'A'.repeat(43)}`)
    .messages({ 'string.pattern.base': '{{#label}} is no hash that "mountkeeper token new" prints' })
    .description('Hash of the token, as "mountkeeper token new" prints it. It lets nobody in.'),
  role: Joi.string()
    .valid(...ROLES)
    .optional()
    .example('viewer')
    .description('What the token may do, as for users; or verbs.'),
  verbs: Joi.array()
    .items(Joi.string().valid(...VERBS))
    .min(1)
    .max(VERBS.length)
    .optional()
    .messages(EMPTIED)
    .example(['reconnect', 'status'])
    .description('In place of a role: what the token may do alone, whatever role that needs.'),
  shares: Joi.array()
    .items(Joi.string())
    .min(1)
    .max(1_000)
    .optional()
    .messages(EMPTIED)
    .meta({ names: 'share' })
    .example(['photos'])
    .description('Shares that the token is bound to: it sees nothing of others. Left out: all.'),
  expires: Joi.string()
    .isoDate()
    .optional()
    .example('2027-01-31T12:00:00Z')
    .messages({ 'string.isoDate': '{{#label}} must be a moment such as "2027-01-31T12:00:00Z"' })
    .description('From when on the token is refused. Left out: never.'),
}).xor('role', 'verbs');

export const schema = Joi.object<AuthConfig, true>({
  username: Joi.string()
    .pattern(NAME)
    .default('admin')
    .messages(NAME_PROBLEM)
    .description('User name for the dashboard and the API.'),
  password: secret()
    .default('')
    .description(
      'Password for the dashboard and the API: the text itself, a hash made by "mountkeeper ' +
        'hash-password", or { env = "NAME" }, { file = "/path" } or { credential = "name" }. Empty: ' +
        'nobody is asked, unless there are users or tokens.',
    ),
  totp_secret: secret().default('').description(TOTP),
  users: Joi.array()
    .items(user)
    .max(MOST)
    .unique(hasSameName)
    .default([])
    .description(
      'Further users of the dashboard and the API, each with a role. Who has web.password is "admin".',
    ),
  tokens: Joi.array()
    .items(token)
    .max(MOST)
    .unique('name')
    .default([])
    .description('Tokens for programs that use the API; "mountkeeper token new" makes them.'),
}).meta({ tier: 'live', entry: true });

/** Whether anybody signs in with a code. */
export function hasCodes({ totp_secret, users }: AuthConfig): boolean {
  return [totp_secret, ...users.map((one) => one.totp_secret)].some((secret = '') => secret !== '');
}

const IN_CLEAR =
  'web.listen lets other machines come over plain HTTP, and from those no password, token or sign-in is taken: set ' +
  '[web.tls], name the proxy in front in web.trusted_proxies, or set web.plain_http = true';

/** Said beforehand, so that nobody finds out when it is the only way in. */
function inClear({ web }: Config): readonly ConfigProblem[] {
  const isTaken = web.tls !== undefined || web.plain_http || web.trusted_proxies.length > 0;
  if (isTaken || isLoopback(web.listen) || !isAnybodyAsked(web)) return [];
  return [{ path: 'web.listen', message: IN_CLEAR, isWarning: true }];
}

/** One name must not have two passwords. */
export function check(config: Config, { clock }: Pick<Services, 'clock'>): readonly ConfigProblem[] {
  const { web } = config;
  const same = (name: string): boolean =>
    web.password !== '' && name.normalize('NFC') === web.username.normalize('NFC');
  const twins = web.users.flatMap(({ name }, index) =>
    same(name)
      ? [{ path: `web.users[${index}].name`, message: `"${name}" is the user of web.password already` }]
      : [],
  );
  const codes = web.users.flatMap(({ totp_secret: text = '' }, index) =>
    codeProblems(text, `web.users[${index}].totp_secret`),
  );
  return [
    ...twins,
    ...codes,
    ...codeProblems(web.totp_secret, 'web.totp_secret'),
    ...inClear(config),
    ...switchedOffProblems(config),
    ...administratorProblems(config, clock.now()),
    ...tokenWarnings(config, clock.now()),
  ];
}

/** A secret that is no secret would let its user in no more. What a reference stands for is seen at the door. */
function codeProblems(text: Secret, path: string): readonly ConfigProblem[] {
  if (text === '' || typeof text !== 'string' || keyOf(text)) return [];
  return [{ path, message: `${path} is no secret that "mountkeeper totp new" prints` }];
}
