/**
 * The contract's part about the configuration: the document as plugins read it, and what a plugin adds to it.
 */
import type { ObjectSchema } from 'joi';
import type { Awaitable, Clock, Processes } from './platform.ts';

/**
 * A problem in a configuration document. `path` is dotted (`shares[0].connection`), line and column count
 * from 1.
 */
export interface ConfigProblem {
  readonly message: string;
  readonly path?: string;
  readonly line?: number;
  readonly column?: number;
}

export type ChangeTier = 'live' | 'protocol' | 'per-share' | 'global' | 'restart';

/**
 * Whether only the configuration file may change a key: `true`, over HTTP it stays as it is;
 * `'but-default'`, over HTTP it may also be put back to its default.
 */
export type FileOnly = boolean | 'but-default';

export interface ConfigChange {
  readonly path: string;
  readonly tier: ChangeTier;
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
  /** By which way it was accepted. */
  readonly origin?: ConfigOrigin;
}

/** Where a document came from. Over HTTP it may not bring in or change what only the file may say. */
export type ConfigOrigin = 'file' | 'http';

export type ConfigCheck =
  | { readonly ok: true; readonly loaded: LoadedConfig; readonly diff: ConfigDiff }
  | {
      readonly ok: false;
      readonly stage: 'parse' | 'validate';
      readonly problems: readonly ConfigProblem[];
      readonly message: string;
    };

/** One documented key of the configuration; the source of help, comments and reference pages. */
export interface ConfigKey {
  /** Dotted, `[]` for arrays: `shares[].name`. */
  readonly path: string;
  readonly type: string;
  readonly description: string;
  readonly default: unknown;
  readonly tier: ChangeTier;
  readonly secret: boolean;
  readonly fileOnly: FileOnly;
  /** Name of the plugin that declares it, or `core`. */
  readonly owner: string;
}

/** A document that is to run. */
export interface ConfigApplication {
  /** The text, or how it is made of the document that runs when its turn has come. */
  readonly text: string | ((running: LoadedConfig) => string | Promise<string>);
  readonly origin: ConfigOrigin;
  /** As for `check`. */
  readonly keepSecrets?: boolean | undefined;
  /** Done before anything is written; a rejection ends it, at the stage `write`. */
  readonly beforeWrite?: (next: LoadedConfig, running: LoadedConfig) => Promise<unknown>;
  /** The file is written also where nothing differs from what runs. */
  readonly evenIfEqual?: boolean;
}

/** What came of it. At the stages `write` and `send`, `message` is the reason alone. */
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
   * Parses, validates and compares with the running document. Changes nothing. With `keepSecrets`, the mask
   * stands for the secret that the running document has at the same key; with it may be done what may be done
   * with a reference, and no more.
   */
  check(
    text: string,
    origin: ConfigOrigin,
    options?: { readonly keepSecrets?: boolean },
  ): Promise<ConfigCheck>;
  /**
   * Atomic: temporary file, fsync, rename; permissions and symlinks kept. Rejects with the reason and leaves
   * the old file whole. With `basis`, the running document that the text was made from: rejects when it runs
   * no more, or the file holds what nobody has read yet.
   */
  write(text: string, basis?: LoadedConfig): Promise<void>;
  /**
   * The one way to change what runs: checks the document, writes the file, has it carried out. One after the
   * other, whoever asks, so that the file never holds one document while another one runs. Rejects only
   * when a plugin's check breaks down.
   */
  apply(application: ConfigApplication): Promise<ConfigApplied>;
  /**
   * Commented TOML of a document: every comment is the schema's description. Explicit keys only; the rest
   * stands commented out with its default.
   */
  render(document: Readonly<Record<string, unknown>>): string;
  /**
   * TOML text, by default the running one, in which secrets and notes that may hold one read as the mask; for
   * `check` with `keepSecrets`. Throws when it is no TOML.
   */
  shown(text?: string): string;
  /** All differences between two accepted documents. */
  compare(before: Config, after: Config): ConfigDiff;
  /** The running document with defaults filled in and every secret as `"********"`. */
  redacted(): Record<string, unknown>;
  keys(): readonly ConfigKey[];
}

/** A literal secret or where to find it. */
export type Secret =
  string | { readonly env: string } | { readonly file: string } | { readonly credential: string };

export interface Secrets {
  /** The clear text. Throws with a sentence naming the variable, file or credential that is missing. */
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
  /** Filled in by the mounter's plugin when not given. */
  mount_point: string;
  read_only: boolean;
  protocols: ('smb' | 'nfs' | 'webdav')[];
}

/** Open: plugins that share the `[web]` section add their keys. */
export interface WebConfig {
  listen: string;
  port: number;
  hostnames: string[];
  /** Addresses and CIDR ranges. */
  trusted_proxies: string[];
}

/**
 * Open: plugins that share the `[bandwidth]` section add their keys. Values as rclone's rates: `"10M"` is 10
 * MiB/s.
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
  web: WebConfig;
  log: { file: string; level: string };
  plugins: { dirs: string[]; [name: string]: unknown };
}

/** What a check of the configuration may use. */
export interface CheckServices {
  readonly processes: Processes;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

/**
 * Keys that a plugin adds to the document. Every key of a schema carries `.description()`, `.default()` and
 * `.meta({ tier })` (the nearest ancestor's tier holds); secrets carry `.meta({ secret: true })`. What names
 * a file, a folder, a program or code, or widens what others may do on this machine, carries `.meta({
 * fileOnly: true })`: over HTTP it stays as it is.
 */
export interface ConfigContribution<C extends object = object> {
  /**
   * Section name; several plugins may add different keys to one section. Left out: the keys stand in
   * `[plugins.<name>]`.
   */
  readonly section?: string;
  readonly schema: ObjectSchema<C>;
  /** Keys added to every `[[shares]]`. */
  readonly share?: ObjectSchema;
  /** Fills in defaults that depend on other keys. Pure; gets a copy it may change. */
  readonly complete?: (config: Config) => void;
  /** Problems that a schema cannot see, such as what an installed tool accepts. Must not change anything. */
  readonly check?: (config: Config, services: CheckServices) => Awaitable<readonly ConfigProblem[]>;
  /**
   * Further problems of a document that came over HTTP, against the running one: what `fileOnly` cannot say.
   * Asked before anything that the document names is used. References are judged by the core: each stays at
   * its key, as it is.
   */
  readonly checkUntrusted?: (next: Config, current: Config) => readonly ConfigProblem[];
  /**
   * Dotted paths inside the document that no schema knows, such as a backend's options, and whose values may
   * be shown to everybody who may read the configuration. Every other text or number that no schema knows is
   * masked.
   */
  readonly harmless?: (config: Config) => readonly string[];
}

/**
 * `value` left out: the key goes, and its default holds. A number at the end of `path` names an item of an
 * array.
 */
export interface TomlEdit {
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}
