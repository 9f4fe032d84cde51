/**
 * Documents that a hostile hand makes of a real one: a program, a folder and a secret of this machine
 * wherever a value can stand.
 */
import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { FITTING, furtherLines, hostile, OPEN, SPELLINGS, TAME } from './untrusted-values.ts';
import type { Traps } from './untrusted-values.ts';

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

type EditOf<Op extends Edit['op']> = Extract<Edit, { op: Op }>;

export interface HostileDocument {
  readonly text: string;
  readonly edits: readonly unknown[];
}

type Parts<Op extends Edit['op']> = {
  readonly [K in Exclude<keyof EditOf<Op>, 'op'>]: Arbitrary<EditOf<Op>[K]>;
};

/** An edit of one sort, with what it needs. */
function sort<Op extends Edit['op']>(op: Op, parts: Parts<Op>): Arbitrary<Edit> {
  return fc
    .record(parts as Record<string, Arbitrary<object>>)
    .map((one) => ({ op, ...one }) as unknown as Edit);
}

const oneOf = (words: string): Arbitrary<string> => fc.constantFrom(...words.split(' '));

const AT = fc.nat(9);
const KNOWN_OPTIONS = oneOf('host port user pass url endpoint concurrency idle_timeout encoding description');
const FEARED_OPTIONS = oneOf(
  'ssh key_file known_hosts_file env_auth shared_credentials_file profile remote upstreams server_command ' +
    'bearer_token_command unix_socket metadata_mapper',
);
const SHARE_KEYS = oneOf('name connection remote_path mount_point read_only exec protocols');
const NAMES = oneOf('nas kept keyed disk wrap new photos');

/** Anything anywhere. */
function wildEdits({ traps, options, types, keys }: Vocabulary): Arbitrary<Edit> {
  const value = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...TAME) },
    { weight: 3, arbitrary: fc.constantFrom(...hostile(traps)) },
  );
  const spelled = fc.tuple(fc.constantFrom(...options), fc.constantFrom(...SPELLINGS));
  const option = fc.oneof(
    KNOWN_OPTIONS,
    FEARED_OPTIONS,
    spelled.map(([one, spell]) => spell(one)),
  );
  const type = fc.oneof(
    oneOf('sftp smb webdav ftp http s3 b2 swift'),
    oneOf('local alias crypt union combine'),
    fc.constantFrom(...types),
  );
  const table = fc.dictionary(option, value, { maxKeys: 4 }).map((one) => ({ ...one }));
  const user = fc.record({ name: oneOf('anna ben'), password: value });
  const plugin = fc.record({ enabled: value, command: value }, { requiredKeys: [] });
  return fc.oneof(
    sort('option', { at: AT, name: option, value }),
    sort('option', { at: AT, name: option, value }),
    sort('drop', { at: AT, index: AT }),
    sort('type', { at: AT, type }),
    sort('rename', { at: AT, name: NAMES }),
    sort('connection', { type, options: table, path: value }),
    sort('share', { at: AT, key: SHARE_KEYS, value: fc.oneof(value, NAMES) }),
    sort('key', { key: fc.constantFrom(...keys.map(({ path }) => path)), value }),
    sort('user', { section: oneOf('smb webdav'), user }),
    sort('plugin', { name: oneOf('stranger example logs absent'), table: plugin }),
  );
}

/** What can stand in a text that is taken over HTTP. */
function plainTexts(traps: Traps): readonly string[] {
  const texts = hostile(traps).filter((one) => typeof one === 'string');
  return texts.filter((one) => one.length < 1_000 && !/\p{Cc}|\p{Zl}|\*{8}|%\(/u.test(one));
}

/** Edits of the right form, with a hostile text wherever a text may stand. */
function mildEdits({ traps, keys }: Vocabulary): Arbitrary<Edit> {
  const text = fc.constantFrom(...plainTexts(traps), '127.0.0.1', 'x', 'photos');
  const opened = fc.constantFrom(...Object.entries(OPEN)).chain(([type, names]) => {
    const some = fc.dictionary(fc.constantFrom(...names), text, { maxKeys: 4 });
    const options = some.map((one): Table => ({ pass: 'p', ...needed(type), ...one }));
    return sort('connection', { type: fc.constant(type), path: text, options });
  });
  const fitting = fc.constantFrom(...keys).chain(({ path, type }) => {
    const values = FITTING[type];
    return sort('key', { key: fc.constant(path), value: values ? fc.constantFrom(...values) : text });
  });
  const ofShare = oneOf('remote_path connection read_only name').chain((key) => {
    const value = key === 'read_only' ? fc.boolean() : fc.oneof(text, oneOf('nas kept disk'));
    return sort('share', { at: AT, key: fc.constant(key), value });
  });
  const ofNas = sort('option', {
    at: fc.constant(0),
    name: fc.constantFrom(...(OPEN['sftp'] ?? [])),
    value: text,
  });
  return fc.oneof(opened, opened, fitting, fitting, ofShare, ofNas, ofNas);
}

function needed(type: string): Table {
  if (type === 's3') return { pass: undefined };
  return type === 'webdav' ? { url: 'http://127.0.0.1:1/' } : { host: '127.0.0.1', port: 1 };
}

/** One attack by itself: whatever else is wrong with a document would hide that it is let through. */
function attacks({ traps }: Vocabulary): Arbitrary<Edit> {
  const { program, bait, secret, awsFile } = traps;
  const named = fc.constantFrom<unknown>(program, bait, secret, awsFile, true);
  const reference = fc.constantFrom({ file: secret }, { env: 'CANARY' });
  const place = oneOf(
    'mount.root mount.rclone mount.rclone_mirror mount.rclone_proxy cache.dir supervisor.state_dir log.file',
  );
  const sent = oneOf('web.password notifications.webhook_secret webdav.realm');
  const elsewhere = fc.constantFrom<unknown>('localhost', 'http://localhost:1/', 2);
  const ofNas = sort('option', {
    at: fc.constant(0),
    name: FEARED_OPTIONS,
    value: fc.oneof(named, reference),
  });
  const lines = fc.constantFrom(...furtherLines(traps));
  return fc.oneof(
    ofNas,
    ofNas,
    ofNas,
    ofNas,
    sort('option', { at: fc.constant(0), name: oneOf('user pass description key_pem'), value: lines }),
    sort('option', { at: fc.constantFrom(1, 2), name: oneOf('host port url user'), value: elsewhere }),
    sort('drop', { at: fc.constantFrom(1, 2, 4), index: AT }),
    sort('key', { key: place, value: fc.constantFrom(program, `${bait}/x`) }),
    sort('key', { key: sent, value: reference }),
    sort('key', { key: fc.constant('notifications.webhook_url'), value: fc.constant('http://localhost:1/') }),
    sort('share', {
      at: AT,
      key: oneOf('mount_point remote_path'),
      value: fc.constantFrom(bait, `${bait}/x`),
    }),
    sort('share', { at: fc.constant(4), key: fc.constant('read_only'), value: fc.constant(false) }),
    sort('share', { at: AT, key: fc.constant('connection'), value: oneOf('disk wrap') }),
    sort('share', { at: AT, key: fc.constant('exec'), value: fc.constant(true) }),
    sort('connection', {
      type: oneOf('local alias crypt'),
      options: fc.constant({}),
      path: fc.constant(bait),
    }),
  );
}

function edits(vocabulary: Vocabulary): Arbitrary<readonly Edit[]> {
  const [wild, mild] = [wildEdits(vocabulary), mildEdits(vocabulary)];
  return fc.oneof(
    { weight: 3, arbitrary: fc.array(wild, { minLength: 1, maxLength: 4 }) },
    { weight: 3, arbitrary: fc.array(mild, { minLength: 1, maxLength: 4 }) },
    { weight: 2, arbitrary: fc.tuple(mild, wild).map((both): readonly Edit[] => both) },
    { weight: 4, arbitrary: attacks(vocabulary).map((one): readonly Edit[] => [one]) },
  );
}

const tables = (document: Table, key: string): Table[] => document[key] as Table[];

function pick(all: Table[], at: number): Table {
  return all[at % all.length] as Table;
}

const CHANGES: { readonly [Op in Edit['op']]: (document: Table, edit: Extract<Edit, { op: Op }>) => void } = {
  option: (document, { at, name, value }) => {
    Object.assign(pick(tables(document, 'connections'), at)['options'] as Table, { [name]: value });
  },
  drop: (document, { at, index }) => {
    const options = pick(tables(document, 'connections'), at)['options'] as Table;
    const names = Object.keys(options);
    delete options[names[index % Math.max(1, names.length)] ?? ''];
  },
  type: (document, { at, type }) => {
    pick(tables(document, 'connections'), at)['type'] = type;
  },
  rename: (document, { at, name }) => {
    pick(tables(document, 'connections'), at)['name'] = name;
  },
  connection: (document, { type, options, path }) => {
    tables(document, 'connections').push({ name: 'evil', type, options: { ...options } });
    tables(document, 'shares').push({ name: 'evil', connection: 'evil', remote_path: path });
  },
  share: (document, { at, key, value }) => {
    pick(tables(document, 'shares'), at)[key] = value;
  },
  key: (document, { key, value }) => {
    const path = key.split('.');
    const last = path.pop() ?? '';
    const table = path.reduce<Table>((inside, one) => (inside[one] ??= {}) as Table, document);
    table[last] = value;
  },
  user: (document, { section, user }) => {
    document[section] = { ...(document[section] as Table | undefined), users: [user] };
  },
  plugin: (document, { name, table }) => {
    document['plugins'] = { ...(document['plugins'] as Table | undefined), [name]: table };
  },
};

function edited(base: Table, all: readonly Edit[]): Table {
  const document = structuredClone(base);
  for (const one of all) (CHANGES[one.op] as (document: Table, edit: Edit) => void)(document, one);
  return document;
}

/** Every key of the document in a line of its own, quoted, with all below it inline. */
export function documentText(document: Table): string {
  return `${Object.entries(document)
    .map(([key, value]) => `${JSON.stringify(key)} = ${inline(value)}`)
    .join('\n')}\n`;
}

function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? '""';
  return `{ ${Object.entries(value)
    .filter(([, one]) => one !== undefined)
    .map(([key, one]) => `${JSON.stringify(key)} = ${inline(one)}`)
    .join(', ')} }`;
}

/** Documents made of `base` by one to four edits; a few have something cut out of their text besides. */
export function hostileDocuments(base: Table, vocabulary: Vocabulary): Arbitrary<HostileDocument> {
  const cut = fc.oneof(
    { weight: 15, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.record({ at: fc.nat(2_000), length: fc.nat(40) }) },
  );
  return fc.tuple(edits(vocabulary), cut).map(([all, gone]) => {
    const text = documentText(edited(base, all));
    return {
      edits: all,
      text: gone === null ? text : text.slice(0, gone.at) + text.slice(gone.at + gone.length),
    };
  });
}
