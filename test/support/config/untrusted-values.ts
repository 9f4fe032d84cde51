/** Values that a hostile hand writes into a document, and the harmless ones beside them. */
export interface Traps {
  /** Leaves a mark when it is run. */
  readonly program: string;
  /** Nothing may be made or changed in it. */
  readonly bait: string;
  /** A file that the document does not refer to. */
  readonly secret: string;
  /** Names the program as one that gives credentials. */
  readonly awsFile: string;
}

/** What harms nobody, so that documents are taken as well, and hostile values stand beside it. */
export const TAME: readonly unknown[] = [
  '127.0.0.1',
  '1',
  8,
  0,
  true,
  false,
  'false',
  'true',
  '1m',
  '16M',
  'x',
  '',
  'photos',
  'nas',
  'Slash,Dot',
  'http://127.0.0.1:1/',
  ['smb'],
  [],
];

/** Values of all types that name a program, a path or a secret. */
export function hostile(traps: Traps): readonly unknown[] {
  const { program, bait, secret } = traps;
  const references = [
    { file: secret },
    { file: `${bait}/none` },
    { env: 'CANARY' },
    { credential: 'canary' },
  ];
  const shapes = [{ file: secret, env: 'CANARY' }, [bait], [program], { command: program }];
  return [
    ...programs(traps),
    ...places(traps),
    ...furtherLines(traps),
    ...remotes(traps),
    ...references,
    ...shapes,
  ];
}

function programs({ program }: Traps): readonly string[] {
  const called = [program, `${program} x`, `"${program}"`, `$(${program})`, `\`${program}\``];
  return [...called, `x; ${program}`, `|${program}`];
}

function places({ bait, secret, awsFile }: Traps): readonly string[] {
  const paths = [awsFile, secret, bait, `${bait}/new`, `${bait}/../bait/new`, `/mnt/../${bait}/m`];
  return [...paths, `unix://${bait}/socket`, `file://${secret}`, `socks5://${bait}`];
}

/** A line of its own in what rclone reads, and what else is no plain text. */
export function furtherLines({ program }: Traps): readonly string[] {
  const line = `ssh = ${program}`;
  const lines = [`x\n${line}`, `x\r\n${line}\r\n`, `x\`\n[global]\n${line}\n`, 'x\n[nas]\ntype = local\n'];
  return [...lines, 'x\0y', 'x\u2028y', 'x\u0085y', '%(pass)s', '%(ssh)s', '********', 'x'.repeat(5_000)];
}

/** Other remotes, as rclone takes them in a text. */
function remotes({ program, bait }: Traps): readonly string[] {
  const token = `:webdav,url=http://127.0.0.1:1,bearer_token_command=${program}:`;
  return [
    `:sftp,host=x,ssh=${program}:`,
    `:local:${bait}`,
    `nas,ssh=${program}:`,
    token,
    `a=:local:${bait} b=/`,
  ];
}

/** By the type of the key, so that a document falls for what it says, not for its form. */
export const FITTING: Readonly<Record<string, readonly unknown[]>> = {
  duration: ['5s', '7m'],
  size: ['64M', '1G'],
  rate: ['5M', '0'],
  boolean: [true, false],
  integer: [1, 8, 4_000],
  'array of string': [[], ['localhost']],
};

/** What each kind of network connection may well have; texts among it take whatever is on one line. */
export const OPEN: Readonly<Record<string, readonly string[]>> = {
  sftp: [
    'user',
    'pass',
    'description',
    'path_override',
    'ciphers',
    'hashes',
    'key_pem',
    'key_file_pass',
    'shell_type',
  ],
  smb: ['host', 'user', 'pass', 'domain', 'description'],
  webdav: ['user', 'pass', 'bearer_token', 'headers', 'vendor', 'description'],
  ftp: ['host', 'user', 'pass', 'description'],
  s3: [
    'provider',
    'access_key_id',
    'secret_access_key',
    'session_token',
    'region',
    'endpoint',
    'acl',
    'storage_class',
  ],
};

/** Ways to write the name of an option: mostly as it is, with dashes, in capitals, with prefixes. */
export const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name,
  (name) => name,
  (name) => name.replaceAll('_', '-'),
  (name) => name.toUpperCase(),
  (name) => `sftp_${name}`,
  (name) => `--${name}`,
  (name) => `override_${name}`,
  (name) => `global.${name}`,
];
