/** The contract's part about the configuration: the document as plugins read it, and what a plugin adds to it. */
import type { ObjectSchema } from 'joi';
import type { Awaitable, Services } from './api.ts';
import type { ConfigProblem, Secret } from './services.ts';

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

/** Open: plugins that share the `[bandwidth]` section add their keys. Values as rclone's rates: `"10M"` is 10 MiB/s. */
export interface BandwidthConfig {
  up: string;
  down: string;
}

/** Open: the whole document with defaults. Keys are spelled as in the file; durations and sizes stay text (see `durationMs`, `sizeBytes`). */
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

/**
 * Keys that a plugin adds to the document. Every key of a schema carries `.description()`, `.default()` and `.meta({ tier })`
 * (the nearest ancestor's tier holds); secrets carry `.meta({ secret: true })`. What names a file, a folder,
 * a program or code, or widens what others may do on this machine, carries `.meta({ fileOnly: true })`: over
 * HTTP it stays as it is.
 */
export interface ConfigContribution<C extends object = object> {
  /** Section name; several plugins may add different keys to one section. Left out: the keys stand in `[plugins.<name>]`. */
  readonly section?: string;
  readonly schema: ObjectSchema<C>;
  /** Keys added to every `[[shares]]`. */
  readonly share?: ObjectSchema;
  /** Fills in defaults that depend on other keys. Pure; gets a copy it may change. */
  readonly complete?: (config: Config) => void;
  /** Problems that a schema cannot see, such as what an installed tool accepts. Must not change anything. */
  readonly check?: (config: Config, services: Pick<Services, 'processes' | 'secrets' | 'clock'>) => Awaitable<readonly ConfigProblem[]>;
  /**
   * Further problems of a document that came over HTTP, against the running one: what `fileOnly` cannot say.
   * Asked before anything that the document names is used. References are judged by the core: each stays at
   * its key, as it is.
   */
  readonly checkUntrusted?: (next: Config, current: Config) => readonly ConfigProblem[];
  /**
   * Dotted paths inside the document that no schema knows, such as a backend's options, and whose values may be shown to
   * everybody who may read the configuration. Every other text or number that no schema knows is masked.
   */
  readonly harmless?: (config: Config) => readonly string[];
}
