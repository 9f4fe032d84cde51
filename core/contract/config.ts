/** Contract of the configuration: the document as plugins read it, and what a plugin adds to it. */
import type { ObjectSchema } from 'joi';
import type { Requester } from './http.ts';
import type { Awaitable, Clock, Processes } from './platform.ts';
import type { TlsConfig } from './http.ts';

/**
 * A problem in a configuration document. `path` is dotted (`shares[0].connection`), line and column count
 * from 1.
 */
export interface ConfigProblem {
  readonly message: string;
  /** From a plugin's `check`: the document is taken all the same, and the message is told beside it. */
  readonly isWarning?: boolean;
  readonly path?: string;
  readonly line?: number;
  readonly column?: number;
}

export type ChangeTier = 'live' | 'protocol' | 'per-share' | 'global' | 'restart';

/**
 * Whether a key can be changed only in the configuration file. `true`: a change over HTTP is refused.
 * `'but-default'`: over HTTP the key may only be reset to its default.
 */
export type FileOnly = boolean | 'but-default';

export interface ConfigChange {
  readonly path: string;
  readonly tier: ChangeTier;
  /** Whether it says who may enter, or holds what does: keys that are marked `entry`. */
  readonly isEntry: boolean;
  readonly before: unknown;
  readonly after: unknown;
}

/** All differences between two documents; `summary` is one readable text with secrets masked. */
export interface ConfigDiff {
  readonly changes: readonly ConfigChange[];
  /** The highest tier touched; undefined when nothing changed. */
  readonly tier: ChangeTier | undefined;
  readonly summary: string;
}

/** An accepted document. Frozen. */
export interface LoadedConfig {
  /** The exact text it came from. */
  readonly text: string;
  /** As written: explicit keys only, secret references kept. */
  readonly document: Readonly<Record<string, unknown>>;
  /** With every default filled in; secrets still as written (literal or reference). */
  readonly config: Config;
  readonly warnings: readonly string[];
  /** Where it was accepted from. */
  readonly origin?: ConfigOrigin;
  /** Whose request brought it; absent for a document that was read from the file. */
  readonly requestedBy?: Requester;
  /** Third parties' plugins that it does not fit, and which are left out: why, by name. Absent where there are none. */
  readonly unfit?: ReadonlyMap<string, string>;
}

/**
 * Where a document came from. A document from `http` may not add or change keys that are marked `fileOnly`.
 */
export type ConfigOrigin = 'file' | 'http';

export type ConfigCheck =
  | { readonly ok: true; readonly loaded: LoadedConfig; readonly diff: ConfigDiff }
  | {
      readonly ok: false;
      readonly stage: 'parse' | 'validate';
      readonly problems: readonly ConfigProblem[];
      readonly message: string;
    };

/** What a key's values are the names of: `.meta({ names: 'share' })`. A form offers them. */
export type NamesOf =
  'address' | 'connection' | 'login' | 'protocol' | 'share' | 'time zone' | 'webhook format';

/** One documented key of the configuration; the source of help, comments and reference pages. */
export interface ConfigKey {
  /** Dotted, `[]` for arrays: `shares[].name`. */
  readonly path: string;
  readonly type: string;
  readonly description: string;
  /** The description in other languages, by language; those that its owner brings. */
  readonly translations: Readonly<Record<string, string>>;
  readonly default: unknown;
  readonly tier: ChangeTier;
  readonly secret: boolean;
  readonly fileOnly: FileOnly;
  /** Words that the schema names beside what else it takes; of a list, those of its items. */
  readonly words?: readonly string[];
  /** Of a list: of its items. */
  readonly names?: NamesOf;
  /** Name of the plugin that declares it, or `core`. */
  readonly owner: string;
}

/** A document that is to be applied. */
export interface ConfigApplication {
  /**
   * The text, or a function that makes it from the document that is running when this application's turn
   * comes.
   */
  readonly text: string | ((running: LoadedConfig) => string | Promise<string>);
  readonly origin: ConfigOrigin;
  /** As for `check`. */
  readonly keepSecrets?: boolean | undefined;
  /**
   * True: the document that ran before is taken back to. Plugins are not asked by `beforeReload`, so that none can
   * keep a document in force that was on trial.
   */
  readonly isTakingBack?: boolean;
  /** Runs before anything is written; a rejection ends the application at the stage `write`. */
  readonly beforeWrite?: (next: LoadedConfig, running: LoadedConfig) => Promise<unknown>;
  /** True: the file is written even when nothing differs from the running document. */
  readonly evenIfEqual?: boolean;
}

/** The outcome. At the stages `write` and `send`, `message` is the bare reason. */
export type ConfigApplied =
  | {
      readonly ok: true;
      readonly loaded: LoadedConfig;
      readonly diff: ConfigDiff;
      readonly former: LoadedConfig;
    }
  | Extract<ConfigCheck, { ok: false }>
  | {
      readonly ok: false;
      readonly stage: 'write' | 'send';
      readonly message: string;
      readonly diff: ConfigDiff;
    };

export interface ConfigService {
  readonly file: string;
  readonly current: LoadedConfig;
  /**
   * Parses, validates and compares with the running document; changes nothing. With `keepSecrets`, a masked
   * secret stands for the running document's secret at the same key, and may be used only where a secret
   * reference may be used.
   */
  check(
    text: string,
    origin: ConfigOrigin,
    options?: { readonly keepSecrets?: boolean },
  ): Promise<ConfigCheck>;
  /**
   * Writes the file atomically (temporary file, fsync, rename) and keeps permissions and symlinks. Rejects
   * with the reason and leaves the old file intact. With `basis`, the running document that the text was
   * made from: rejects when another document is running by now, or when the file on disk has unread
   * changes.
   */
  write(text: string, basis?: LoadedConfig): Promise<void>;
  /**
   * The one way to change the running document: checks it, writes the file and applies it. Applications run
   * one after the other, so the file never holds one document while another one is running. Rejects only
   * when a plugin's check throws.
   */
  apply(application: ConfigApplication): Promise<ConfigApplied>;
  /**
   * Commented TOML of a document; every comment is the schema's description. Keys that are not set are
   * written as comments, with their default.
   */
  render(document: Readonly<Record<string, unknown>>): string;
  /**
   * TOML text (the running document's by default) with every secret, and every comment that may hold one,
   * masked; to be sent back with `keepSecrets`. Throws when the text is not TOML.
   */
  shown(text?: string): string;
  /**
   * Whether `shown` writes this text anew, as `render` does, since secrets in it can be masked in no other way: the
   * notes and the layout that somebody gave it are not in what is shown.
   */
  isShownAnew(text?: string): boolean;
  /**
   * Tells by the path of a value in a document, which nobody need have checked, whether it is one that `shown` masks.
   */
  secretsIn(document: Readonly<Record<string, unknown>>): (path: readonly (string | number)[]) => boolean;
  /** All differences between two accepted documents. */
  compare(before: Config, after: Config): ConfigDiff;
  /** The running document with defaults filled in and every secret as `"********"`. */
  redacted(): Record<string, unknown>;
  keys(): readonly ConfigKey[];
}

/** A secret as text, or a reference to where it is stored. */
export type Secret =
  string | { readonly env: string } | { readonly file: string } | { readonly credential: string };

export interface Secrets {
  /** The clear text. Throws with a sentence that names the missing variable, file or credential. */
  resolve(secret: Secret): string;
}

export interface ConnectionConfig {
  name: string;
  type: string;
  options: Record<string, string | number | boolean | Exclude<Secret, string>>;
}

/** Open: a plugin adds keys to each `[[shares]]` through `config.share`. */
export interface ShareConfig {
  name: string;
  connection: string;
  remote_path: string;
  /** Filled in by the plugin that provides the mounter when it is not given. */
  mount_point: string;
  read_only: boolean;
  /** Names of protocols that plugins provide as `exporter:<protocol>`. */
  protocols: string[];
  /**
   * Who may enter, over protocols that know users: names, and groups with a leading `@`. None in this and in
   * `read_only_users`: every user of the server. See `shareAccess`.
   */
  users?: string[];
  /** Who may enter and change nothing, also where `users` names them, too. */
  read_only_users?: string[];
}

/** Open: plugins that share the `[web]` section add their keys. */
export interface WebConfig {
  listen: string;
  port: number;
  hostnames: string[];
  /** Addresses and CIDR ranges. */
  trusted_proxies: string[];
  /** The address speaks TLS alone. Left out: plain HTTP. */
  tls?: TlsConfig & { hsts: boolean };
  /** Passwords, tokens and sign-ins of other machines are taken over plain HTTP, too. */
  plain_http?: boolean;
}

/**
 * Open: plugins that share the `[bandwidth]` section add their keys. Rates are text in rclone's notation:
 * `"10M"` is 10 MiB/s.
 */
export interface BandwidthConfig {
  up: string;
  down: string;
}

/**
 * Open: the whole document with defaults. Keys are spelled as in the file; durations and sizes stay text (see
 * `durationMs`, `sizeBytes`).
 */
export interface Config {
  connections: ConnectionConfig[];
  shares: ShareConfig[];
  cache: { dir: string; max_size: string; max_age: string; min_free_space: string };
  supervisor: { poll_interval: string; stop_timeout: string; state_dir: string };
  bandwidth: BandwidthConfig;
  /** Names of users, by the name of the group. */
  groups?: Record<string, string[]>;
  web: WebConfig;
  log: { file: string; level: string };
  plugins: { dirs: string[]; install_from_page: boolean; [name: string]: unknown };
}

/** Services that a configuration check may use. */
export interface CheckServices {
  readonly processes: Processes;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

/** The users of one server. */
export interface Logins {
  readonly names: readonly string[];
  /** "Anna" and "anna" are one user there. */
  readonly ignoresCase: boolean;
  /** Others can log in, too, whom the document does not name: shares may name anybody. */
  readonly hasOthers?: boolean;
}

/**
 * Keys that a plugin adds to the document. Every key of a schema has `.description()`, `.default()` and
 * `.meta({ tier })` (inherited from the nearest ancestor); secrets have `.meta({ secret: true })`. A key
 * that names a file, a folder, a program or code, or that gives others more access to this machine, has
 * `.meta({ fileOnly: true })`: it cannot be changed over HTTP. One that says who may enter, or by what (people, their
 * passwords, machines), has `.meta({ entry: true })`: settings on trial that fail bring nobody back by it.
 */
export interface ConfigContribution<C extends object = object> {
  /**
   * Section name; plugins that come with Mountkeeper may add different keys to one section, a third party's has one
   * of its own. Absent: the keys are in
   * `[plugins.<name>]`.
   */
  readonly section?: string;
  readonly schema: ObjectSchema<C>;
  /** Keys added to every `[[shares]]`. */
  readonly share?: ObjectSchema;
  /**
   * The descriptions of these keys in other languages, by language and path: `{ zh: { 'smb.port': '…' } }`.
   * `readDescriptions` reads them from files. English stands in for what is missing.
   */
  readonly descriptions?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * Brings `[plugins.<name>]`, as a former version of the plugin took it, to the form of this one; without the core's
   * keys. Called by `mountkeeper plugin migrate` for a table that does not fit `schema`; must give one that does. Pure;
   * gets a copy it may change.
   */
  readonly migrate?: (table: Record<string, unknown>) => Awaitable<Record<string, unknown>>;
  /** Fills in defaults that depend on other keys. Pure; gets a copy it may change. */
  readonly complete?: (config: Config) => void;
  /** Problems that a schema cannot see, such as what an installed tool accepts. Must not change anything. */
  readonly check?: (config: Config, services: CheckServices) => Awaitable<readonly ConfigProblem[]>;
  /**
   * Further problems of a document that came over HTTP, compared with the running one; for rules that
   * `fileOnly` cannot express. Called before anything that the document names is used. The core judges
   * secret references itself: each must stay unchanged at its key.
   */
  readonly checkUntrusted?: (next: Config, current: Config) => readonly ConfigProblem[];
  /**
   * Names that can log in to the server that these keys describe: shares may name them in `users`. Of a server
   * that ignores case, in any spelling. Called with every document, also while the server is off.
   */
  readonly logins?: (config: Config) => Logins;
  /**
   * Dotted paths of values that no schema knows (such as a backend's options) and that anybody who may read
   * the configuration may see. Every other text or number that no schema knows is masked.
   */
  readonly harmless?: (config: Config) => readonly string[];
}

/**
 * Without `value` the key is removed, so that its default applies. A number at the end of `path` is the
 * index of an array item.
 */
export interface TomlEdit {
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}
