import { Joi, secret } from 'mountkeeper';
import type { Config, ConfigProblem, Logins, Secret } from 'mountkeeper';

export interface SmbUser {
  name: string;
  password: Secret;
}

export interface SmbConfig {
  enabled: boolean;
  port: number;
  listen: string[];
  guest: boolean;
  users: SmbUser[];
}

declare module 'mountkeeper' {
  interface Config {
    smb: SmbConfig;
  }
}

/** Names that the server itself needs. */
const RESERVED = ['root', 'nobody', 'nogroup', 'guest'];

const user = Joi.object<SmbUser, true>({
  name: Joi.string()
    .pattern(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$/)
    .invalid(...RESERVED)
    .insensitive()
    .required()
    .example('alice')
    .messages({
      'string.pattern.base': '{{#label}} must be 1 to 32 letters, digits, ".", "_" or "-"',
      'any.invalid': '{{#label}} is a name that the server keeps for itself; choose another',
    })
    .description('Name that the user logs in with.'),
  password: secret()
    .required()
    .example({ file: '/etc/mountkeeper/alice' })
    .description(
      'The user\'s password: the text itself, or { env = "NAME" }, { file = "/path" } or { credential = "name" }.',
    ),
});

export const schema = Joi.object<SmbConfig, true>({
  enabled: Joi.boolean().default(false).description('Show the shares over SMB.'),
  port: Joi.number()
    .integer()
    .min(1)
    .max(65_535)
    .default(445)
    .description('TCP port. Finder and Explorer know only 445.'),
  listen: Joi.array()
    .items(
      Joi.string()
        .pattern(/^[^\s\x00-\x1f\x7f;#"]{1,64}$/)
        .messages({
          'string.pattern.base': '{{#label}} must be an address or the name of a network interface',
        }),
    )
    .min(1)
    .max(64)
    .unique()
    .default(['127.0.0.1'])
    .meta({ names: 'address' })
    .description('Addresses or names of network interfaces to listen on; "0.0.0.0" or "::" is all of them.'),
  guest: Joi.boolean()
    .default(false)
    .meta({ entry: true })
    .description('Let everybody in without a password, to read and write.'),
  users: Joi.array()
    .items(user)
    .max(1_000)
    .default([])
    .custom(withoutDoubles)
    .meta({ entry: true })
    .description('Who may log in. Nobody, when there is no user and no guest.'),
}).meta({ tier: 'protocol' });

/** Samba ignores case. Joi's own `unique` compares every pair, which is slow. Also asked about what is no user. */
function withoutDoubles(users: readonly SmbUser[], helpers: Joi.CustomHelpers): unknown {
  const names = users.map((user, index) => nameOf(user)?.toLowerCase() ?? index);
  const first = new Map<string | number, number>(
    names.toReversed().map((name, index) => [name, names.length - 1 - index]),
  );
  const pos = names.findIndex((name, index) => first.get(name) !== index);
  if (pos === -1) return users;
  const dupePos = first.get(names[pos] ?? pos);
  return helpers.error(
    'array.unique',
    { pos, dupePos, value: users[pos], dupeValue: users[dupePos ?? 0] },
    helpers.state.localize?.([...(helpers.state.path ?? []), pos]) as never,
  );
}

function nameOf(user: unknown): string | undefined {
  const name = (user as Partial<SmbUser> | null)?.name as unknown;
  return typeof name === 'string' ? name : undefined;
}

/** Checks that a schema cannot make. */
export function check({ smb }: Config): readonly ConfigProblem[] {
  return smb.users.flatMap((one, index) =>
    one.password === ''
      ? [
          {
            path: `smb.users[${index}].password`,
            message: `the password of the user "${one.name}" is empty; set one, or switch smb.guest on`,
          },
        ]
      : [],
  );
}

export function logins({ smb }: Config): Logins {
  return { names: smb.users.map(({ name }) => name), ignoresCase: true };
}
