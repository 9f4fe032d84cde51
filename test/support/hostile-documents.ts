/** Documents that a hostile hand makes of a real one: a program, a folder and a secret of this machine wherever a value can stand. */
import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';

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

export interface Vocabulary {
  readonly traps: Traps;
  /** Every option of every kind of remote. */
  readonly options: readonly string[];
  readonly types: readonly string[];
  /** Keys outside arrays. */
  readonly keys: readonly { readonly path: string; readonly type: string }[];
}

type Table = Record<string, unknown>;
type Edit =
  | { readonly op: 'option'; readonly at: number; readonly name: string; readonly value: unknown }
  | { readonly op: 'drop'; readonly at: number; readonly index: number }
  | { readonly op: 'type'; readonly at: number; readonly type: string }
  | { readonly op: 'rename'; readonly at: number; readonly name: string }
  | { readonly op: 'connection'; readonly type: string; readonly options: Table; readonly path: unknown }
  | { readonly op: 'share'; readonly at: number; readonly key: string; readonly value: unknown }
  | { readonly op: 'key'; readonly key: string; readonly value: unknown }
  | { readonly op: 'user'; readonly section: string; readonly user: Table }
  | { readonly op: 'plugin'; readonly name: string; readonly table: Table };

export interface HostileDocument {
  readonly text: string;
  readonly edits: readonly unknown[];
}

/** What harms nobody, so that documents are taken as well, and hostile values stand beside it. */
const TAME: readonly unknown[] = ['127.0.0.1', '1', 8, 0, true, false, 'false', 'true', '1m', '16M', 'x', '', 'photos', 'nas', 'Slash,Dot', 'http://127.0.0.1:1/', ['smb'], []];

function hostile({ program, bait, secret, awsFile }: Traps): readonly unknown[] {
  return [
    program, `${program} x`, `"${program}"`, `$(${program})`, `\`${program}\``, `x; ${program}`, `|${program}`, awsFile, secret, bait, `${bait}/new`, `${bait}/../bait/new`,
    `/mnt/../${bait}/m`, `x\nssh = ${program}`, `x\r\nssh = ${program}\r\n`, `x\`\n[global]\nssh = ${program}\n`, `x\n[nas]\ntype = local\n`, 'x\0y', 'x\u2028y', 'x\u0085y',
    `:sftp,host=x,ssh=${program}:`, `:local:${bait}`, `nas,ssh=${program}:`, `:webdav,url=http://127.0.0.1:1,bearer_token_command=${program}:`,
    `a=:local:${bait} b=/`, '%(pass)s', '%(ssh)s', '********', `unix://${bait}/socket`, `file://${secret}`, `socks5://${bait}`, 'x'.repeat(5_000),
    { file: secret }, { file: `${bait}/none` }, { env: 'CANARY' }, { credential: 'canary' }, { file: secret, env: 'CANARY' }, [bait], [program], { command: program },
  ];
}

/** By the type of the key, so that a document falls for what it says, not for its form. */
const FITTING: Readonly<Record<string, readonly unknown[]>> = {
  duration: ['5s', '7m'], size: ['64M', '1G'], rate: ['5M', '0'], boolean: [true, false], integer: [1, 8, 4_000], 'array of string': [[], ['localhost']],
};

/** What each kind of network connection may well have; texts among it take whatever is on one line. */
const OPEN: Readonly<Record<string, readonly string[]>> = {
  sftp: ['user', 'pass', 'description', 'path_override', 'ciphers', 'hashes', 'key_pem', 'key_file_pass', 'shell_type'],
  smb: ['host', 'user', 'pass', 'domain', 'description'],
  webdav: ['user', 'pass', 'bearer_token', 'headers', 'vendor', 'description'],
  ftp: ['host', 'user', 'pass', 'description'],
  s3: ['provider', 'access_key_id', 'secret_access_key', 'session_token', 'region', 'endpoint', 'acl', 'storage_class'],
};

const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => name, (name) => name, (name) => name, (name) => name.replaceAll('_', '-'), (name) => name.toUpperCase(), (name) => `sftp_${name}`, (name) => `--${name}`,
  (name) => `override_${name}`, (name) => `global.${name}`,
];

function edits({ traps, options, types, keys }: Vocabulary): Arbitrary<readonly Edit[]> {
  const value = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...TAME) }, { weight: 3, arbitrary: fc.constantFrom(...hostile(traps)) });
  const option = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom('host', 'port', 'user', 'pass', 'url', 'endpoint', 'concurrency', 'idle_timeout', 'encoding', 'description') },
    { weight: 2, arbitrary: fc.constantFrom('ssh', 'key_file', 'known_hosts_file', 'env_auth', 'shared_credentials_file', 'profile', 'remote', 'upstreams', 'server_command', 'bearer_token_command', 'unix_socket', 'metadata_mapper') },
    { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...options), fc.constantFrom(...SPELLINGS)).map(([name, spell]) => spell(name)) },
  );
  const type = fc.oneof(fc.constantFrom('sftp', 'smb', 'webdav', 'ftp', 'http', 's3', 'b2', 'swift'), fc.constantFrom('local', 'alias', 'crypt', 'union', 'combine'), fc.constantFrom(...types));
  const at = fc.nat(9);
  const name = fc.constantFrom('nas', 'kept', 'keyed', 'disk', 'wrap', 'new', 'photos');
  const table = fc.dictionary(option, value, { maxKeys: 4 }).map((one) => ({ ...one }));
  const edit = fc.oneof(
    fc.record({ op: fc.constant('option' as const), at, name: option, value }),
    fc.record({ op: fc.constant('option' as const), at, name: option, value }),
    fc.record({ op: fc.constant('drop' as const), at, index: at }),
    fc.record({ op: fc.constant('type' as const), at, type }),
    fc.record({ op: fc.constant('rename' as const), at, name }),
    fc.record({ op: fc.constant('connection' as const), type, options: table, path: value }),
    fc.record({ op: fc.constant('share' as const), at, key: fc.constantFrom('name', 'connection', 'remote_path', 'mount_point', 'read_only', 'exec', 'protocols'), value: fc.oneof(value, name) }),
    fc.record({ op: fc.constant('key' as const), key: fc.constantFrom(...keys.map(({ path }) => path)), value }),
    fc.record({ op: fc.constant('user' as const), section: fc.constantFrom('smb', 'webdav'), user: fc.record({ name: fc.constantFrom('anna', 'ben'), password: value }) }),
    fc.record({ op: fc.constant('plugin' as const), name: fc.constantFrom('stranger', 'example', 'logs', 'absent'), table: fc.record({ enabled: value, command: value }, { requiredKeys: [] }) }),
  );
  const mild = mildEdits(traps, keys);
  return fc.oneof(
    { weight: 3, arbitrary: fc.array(edit, { minLength: 1, maxLength: 4 }) },
    { weight: 3, arbitrary: fc.array(mild, { minLength: 1, maxLength: 4 }) },
    { weight: 2, arbitrary: fc.tuple(mild, edit).map((both): readonly Edit[] => both) },
  );
}

/** Edits of the right form, with a hostile text wherever a text may stand. */
function mildEdits(traps: Traps, keys: Vocabulary['keys']): Arbitrary<Edit> {
  // eslint-disable-next-line no-control-regex
  const texts = hostile(traps).filter((one): one is string => typeof one === 'string' && one.length < 1_000 && !/[\0-\x1f\x7f-\x9f\u2028]/.test(one) && !/\*{8}|%\(/.test(one));
  const text = fc.constantFrom(...texts, '127.0.0.1', 'x', 'photos');
  const opened = fc.constantFrom(...Object.entries(OPEN)).chain(([type, names]) => fc.record({
    op: fc.constant('connection' as const), type: fc.constant(type), path: text,
    options: fc.dictionary(fc.constantFrom(...names), text, { maxKeys: 4 }).map((one): Table => ({ pass: 'p', ...needed(type), ...one })),
  }));
  const fitting = fc.constantFrom(...keys).chain(({ path, type }) => fc.record({
    op: fc.constant('key' as const), key: fc.constant(path), value: fc.oneof(fc.constantFrom(...(FITTING[type] ?? ['x'])), ...(FITTING[type] ? [] : [text])),
  }));
  const ofShare = fc.constantFrom('remote_path', 'connection', 'read_only', 'name').chain((key) => fc.record({
    op: fc.constant('share' as const), at: fc.nat(9), key: fc.constant(key), value: key === 'read_only' ? fc.boolean() : fc.oneof(text, fc.constantFrom('nas', 'kept', 'disk')),
  }));
  const ofNas = fc.record({ op: fc.constant('option' as const), at: fc.constant(0), name: fc.constantFrom(...(OPEN['sftp'] ?? [])), value: text });
  return fc.oneof(opened, opened, fitting, fitting, ofShare, ofNas, ofNas);
}

function needed(type: string): Table {
  if (type === 's3') return { pass: undefined };
  return type === 'webdav' ? { url: 'http://127.0.0.1:1/' } : { host: '127.0.0.1', port: 1 };
}

const tables = (document: Table, key: string): Table[] => document[key] as Table[];

function pick(all: Table[], at: number): Table {
  return all[at % all.length] as Table;
}

const CHANGES: { readonly [Op in Edit['op']]: (document: Table, edit: Extract<Edit, { op: Op }>) => void } = {
  option: (document, { at, name, value }) => { Object.assign(pick(tables(document, 'connections'), at)['options'] as Table, { [name]: value }); },
  drop: (document, { at, index }) => {
    const options = pick(tables(document, 'connections'), at)['options'] as Table;
    const names = Object.keys(options);
    delete options[names[index % Math.max(1, names.length)] ?? ''];
  },
  type: (document, { at, type }) => { pick(tables(document, 'connections'), at)['type'] = type; },
  rename: (document, { at, name }) => { pick(tables(document, 'connections'), at)['name'] = name; },
  connection: (document, { type, options, path }) => {
    tables(document, 'connections').push({ name: 'evil', type, options: { ...options } });
    tables(document, 'shares').push({ name: 'evil', connection: 'evil', remote_path: path });
  },
  share: (document, { at, key, value }) => { pick(tables(document, 'shares'), at)[key] = value; },
  key: (document, { key, value }) => {
    const path = key.split('.');
    const last = path.pop() ?? '';
    const table = path.reduce<Table>((inside, one) => (inside[one] ??= {}) as Table, document);
    table[last] = value;
  },
  user: (document, { section, user }) => { document[section] = { ...(document[section] as Table | undefined), users: [user] }; },
  plugin: (document, { name, table }) => { document['plugins'] = { ...(document['plugins'] as Table | undefined), [name]: table }; },
};

function edited(base: Table, all: readonly Edit[]): Table {
  const document = structuredClone(base);
  for (const one of all) (CHANGES[one.op] as (document: Table, edit: Edit) => void)(document, one);
  return document;
}

/** Every key of the document in a line of its own, quoted, with all below it inline. */
export function documentText(document: Table): string {
  return `${Object.entries(document).map(([key, value]) => `${JSON.stringify(key)} = ${inline(value)}`).join('\n')}\n`;
}

function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '""';
  return `{ ${Object.entries(value).filter(([, one]) => one !== undefined).map(([key, one]) => `${JSON.stringify(key)} = ${inline(one)}`).join(', ')} }`;
}

/** Documents made of `base` by one to four edits; a few have something cut out of their text besides. */
export function hostileDocuments(base: Table, vocabulary: Vocabulary): Arbitrary<HostileDocument> {
  const cut = fc.oneof({ weight: 15, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.record({ at: fc.nat(2_000), length: fc.nat(40) }) });
  return fc.tuple(edits(vocabulary), cut).map(([all, gone]) => {
    const text = documentText(edited(base, all));
    return { edits: all, text: gone === null ? text : text.slice(0, gone.at) + text.slice(gone.at + gone.length) };
  });
}
