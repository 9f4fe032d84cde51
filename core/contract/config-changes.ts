/**
 * The contract of changes of the configuration: one service that every way in over HTTP goes through, and the
 * history of what was applied, from whatever side. Types alone.
 */
import type { Release } from './platform.ts';
import type { ConfigChange, ConfigProblem, TomlEdit } from './config.ts';
import type { LocalText } from './dashboard.ts';

/** Whom a change interrupts. */
export interface Interruption {
  /** Shares that are taken down and mounted anew, after their files have gone up. */
  readonly shares: readonly string[];
  /** Servers of the LAN are restarted or re-read: clients may have to connect again. */
  readonly servers: boolean;
  /** Something waits for the next start of the daemon. */
  readonly restart: boolean;
}

/** Values for several keys at once, for a kind of work. */
export interface ConfigPreset {
  readonly name: string;
  readonly title: LocalText;
  readonly edits: readonly TomlEdit[];
}

/** Provided as `configPresets` by the plugin of the presets. */
export interface ConfigPresets {
  list(): readonly ConfigPreset[];
}

/** What a document would change, or why it is refused. */
export type ConfigVerdict =
  | {
      readonly ok: true;
      readonly summary: string;
      readonly changes: readonly ConfigChange[];
      readonly interrupts: Interruption;
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      readonly stage: 'parse' | 'validate';
      readonly message: string;
      readonly problems: readonly ConfigProblem[];
    };

/** From which side a document came. */
export type ConfigAuthor = 'file' | 'api' | 'page' | 'revert';

/** A document to be applied. */
export interface ConfigSubmission {
  readonly text: string;
  readonly by: ConfigAuthor;
  /** The mask stands for the secret that the running document has at the same key. */
  readonly keepSecrets?: boolean | undefined;
  /** The version that the text was made from; left out, it is applied to whatever runs. */
  readonly version?: string | undefined;
  /**
   * Take it back after 60 s unless `reached` or `confirm` is called, or when a share fails by then that was
   * healthy.
   */
  readonly onTrial?: boolean | undefined;
}

/** In the words and codes of `POST /api/config`; 412 where another version runs. */
export interface ConfigAnswer {
  readonly status: number;
  readonly ok: boolean;
  readonly message: string;
  readonly summary: string | null;
  /** The version that runs now. */
  readonly version: string;
}

/** A document that was applied. */
export interface AppliedConfig {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly by: ConfigAuthor;
  /** The difference from the version before, in words, secrets masked. */
  readonly summary: string;
}

/** A document that is taken back at `until` unless somebody keeps it. */
export interface ConfigTrial {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** The page that sent it has reached the daemon since. */
  readonly isReached: boolean;
  /** Shares that were healthy before and have failed since. */
  readonly failed: readonly string[];
}

/** Provided as `configChanges` by the plugin of the control API. */
export interface ConfigChanges {
  /** Names the text of the running document; changes with every character. */
  readonly version: string;
  check(text: string, options?: { readonly keepSecrets?: boolean | undefined }): Promise<ConfigVerdict>;
  /** One after the other. Rejects only where the check itself cannot be made. */
  submit(submission: ConfigSubmission): Promise<ConfigAnswer>;
  /** What was applied, the newest first: at most 20. */
  history(): readonly AppliedConfig[];
  /** Its text with secrets masked; undefined where there is no such version. */
  text(version: string): string | undefined;
  /** What putting a version back would change, in words; undefined where there is no such version. */
  difference(version: string): Promise<ConfigVerdict | undefined>;
  readonly trial: ConfigTrial | undefined;
  /** The page that sent the document on trial has reached the daemon. False where that is not on trial. */
  reached(version: string): boolean;
  /** Keeps what is on trial, whatever fails. False where that is not on trial. */
  confirm(version: string): boolean;
  /** Takes back what is on trial, at once. */
  revert(version: string): Promise<ConfigAnswer>;
  /** Calls `changed` whenever the history or the trial is another. */
  watch(changed: () => void): Release;
}

export type NasKind = 'smb' | 'sftp' | 'webdav' | 'ftp';

/** Where the NAS is, and as whom. */
export interface NasAnswers {
  readonly kind: NasKind;
  /** A name or address, with a port where it is another than usual; of WebDAV the whole URL. */
  readonly address: string;
  readonly user: string;
  readonly password: string;
}

export interface SetupAnswers {
  readonly nas: NasAnswers;
  /** Folders of the NAS, each of which becomes a share. */
  readonly folders: readonly string[];
  /**
   * Who may use them over SMB from the LAN; left out: nobody but this machine's own users, through the
   * mounts.
   */
  readonly lan?: { readonly user: string; readonly password: string } | undefined;
}

/** Provided as `setup`. Held to the allowlist of HTTP, whoever asks. */
export interface SetupService {
  /** Folders of the NAS below `path`, by name. Rejects with the reason in plain words. */
  folders(nas: NasAnswers, path: string): Promise<readonly string[]>;
  /** Names that the folders get as shares, in their order. */
  shareNames(folders: readonly string[]): readonly string[];
  check(answers: SetupAnswers): Promise<ConfigVerdict>;
  apply(answers: SetupAnswers, by: ConfigAuthor): Promise<ConfigAnswer>;
}
