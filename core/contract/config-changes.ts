/**
 * Contract of configuration changes: the one service through which HTTP changes go, and the history of what
 * was applied from any source. Types alone.
 */
import type { Release } from './platform.ts';
import type { ConfigChange, ConfigProblem, TomlEdit } from './config.ts';
import type { LocalText } from './dashboard.ts';
import type { Notice } from './notifications.ts';

/** What a change interrupts. */
export interface Interruption {
  /** Shares that are drained, unmounted and mounted again. */
  readonly shares: readonly string[];
  /** LAN servers restart or reload: clients may have to connect again. */
  readonly servers: boolean;
  /** Part of the change takes effect only when the daemon starts again. */
  readonly restart: boolean;
}

/** A named set of values for several keys, made for one kind of use. */
export interface ConfigPreset {
  readonly name: string;
  readonly title: LocalText;
  readonly edits: readonly TomlEdit[];
}

/** The service `configPresets`, provided by the plugin `presets`. */
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

/** Where a document came from. */
export type ConfigAuthor = 'file' | 'api' | 'page' | 'revert';

/** A document to be applied. */
export interface ConfigSubmission {
  readonly text: string;
  readonly by: ConfigAuthor;
  /** True: a masked secret stands for the running document's secret at the same key. */
  readonly keepSecrets?: boolean | undefined;
  /**
   * The version that the text was edited from. Absent: the document is applied whatever version is running.
   */
  readonly version?: string | undefined;
  /** Asked when its turn comes: false refuses it with 401. Others may have taken away what let its sender in. */
  readonly isStillLetIn?: (() => boolean) | undefined;
  /**
   * Puts the former document back after 60 s unless `confirm` is called, or `reached` is and every share that was
   * healthy is so again by then. A share that has to send its files by the former settings first has 60 s from then on.
   * Shares do not count where the document changes who may enter; where `isStillLetIn` says that its sender is let in
   * still, and it leaves the page where it is, such a document is not put on trial at all.
   */
  readonly onTrial?: boolean | undefined;
}

/**
 * The answer, with the messages and status codes of `POST /api/config`; 412 when another version is
 * running.
 */
export interface ConfigAnswer {
  readonly status: number;
  readonly ok: boolean;
  readonly message: string;
  readonly summary: string | null;
  /** The version that is running now. */
  readonly version: string;
  /**
   * Protocols whose server may, at this moment, still let in who may not come in any more, or by a former password.
   * Left out where the change keeps nobody out.
   */
  readonly stillOpen?: readonly string[] | undefined;
}

/** One document of the history. */
export interface AppliedConfig {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly by: ConfigAuthor;
  /** The differences from the version before, as text with secrets masked. */
  readonly summary: string;
}

/**
 * A document that does not stay unless somebody keeps it, or it is reached and all shares that it may have broken pass.
 */
export interface ConfigTrial {
  readonly version: string;
  /**
   * When that is decided, or taking it back tried again, in milliseconds since the epoch. Undefined while it hangs on
   * shares that wait.
   */
  readonly until: number | undefined;
  /** True once the page that sent it, or one that an administrator opened, has reached the daemon since. */
  readonly isReached: boolean;
  /** Shares that were healthy before the change and are not now, be they failed or not; none of those that wait. */
  readonly failed: readonly string[];
  /** The same, with the reason of each. */
  readonly down: readonly DownShare[];
  /**
   * Shares that have the former settings still, since files of theirs are not on the remote. Their time begins later.
   */
  readonly waiting: readonly string[];
}

/** A share that was healthy before the document on trial and is not now. */
export interface DownShare {
  readonly share: string;
  /** False while it is only on its way: neither mounted nor failed. */
  readonly hasFailed: boolean;
  /** One plain sentence or several, without a full stop. */
  readonly reason: string;
}

/** The service `configChanges`, provided by the plugin `control-api`. */
export interface ConfigChanges {
  /** Hash of the running document's text; changes with every character. */
  readonly version: string;
  check(text: string, options?: { readonly keepSecrets?: boolean | undefined }): Promise<ConfigVerdict>;
  /** Submissions run one after the other. Rejects only when the check itself cannot be made. */
  submit(submission: ConfigSubmission): Promise<ConfigAnswer>;
  /** Applied documents, newest first, at most 20. */
  history(): readonly AppliedConfig[];
  /** The text of a version with secrets masked; undefined for an unknown version. */
  text(version: string): string | undefined;
  /** Whether `text` gives this version without the notes and the layout that somebody gave it. */
  isAnew(version: string): boolean;
  /** What going back to a version would change; undefined for an unknown version. */
  difference(version: string): Promise<ConfigVerdict | undefined>;
  readonly trial: ConfigTrial | undefined;
  /**
   * Tells that a page of somebody who may change settings reached the daemon with the document on trial. False
   * when that version is not on trial, or the web server is not where the document says.
   */
  reached(version: string): boolean;
  /** Keeps the document on trial, even if shares fail. False when that version is not on trial any more. */
  confirm(version: string): boolean;
  /** Ends the trial at once and puts the former document back. */
  revert(version: string): Promise<ConfigAnswer>;
  /**
   * That the document on trial was taken back, and why: until another one is applied, somebody says that they have
   * read it, or an hour has passed.
   */
  readonly takenBack: Notice | undefined;
  /** Somebody has read `takenBack`. */
  acknowledge(): void;
  /** Calls `changed` whenever the history or the trial has changed. */
  watch(changed: () => void): Release;
}

export type NasKind = 'smb' | 'sftp' | 'webdav' | 'ftp';

/** Where the NAS is, and which account to use. */
export interface NasAnswers {
  readonly kind: NasKind;
  /** Host name or address, with the port if it is not the usual one; for WebDAV the whole URL. */
  readonly address: string;
  readonly user: string;
  readonly password: string;
}

export interface SetupAnswers {
  readonly nas: NasAnswers;
  /** Folders of the NAS; each becomes a share. */
  readonly folders: readonly string[];
  /**
   * The account for SMB clients on the LAN. Absent: the shares can be used only on this machine, through
   * their mounts.
   */
  readonly lan?: { readonly user: string; readonly password: string } | undefined;
}

/** What clients on the LAN enter to reach one share by SMB. */
export interface LanAddresses {
  readonly share: string;
  readonly finder: string;
  /** Undefined on another port than 445: Explorer knows no other. */
  readonly explorer: string | undefined;
  /** A command line. */
  readonly linux: string;
}

/** A server of files that announces itself in the network. */
export interface FoundNas {
  readonly kind: NasKind;
  /** As it calls itself: text of a stranger, without control characters, at most 63 characters. */
  readonly name: string;
  /** As `NasAnswers.address` takes it. */
  readonly address: string;
}

/** The service `nasFinder`, provided by the plugin `discovery`. */
export interface NasFinder {
  /** Asks the networks of this machine once, for about two seconds. At most 32, by name. Never rejects. */
  find(signal?: AbortSignal): Promise<readonly FoundNas[]>;
}

/** The service `setup`. Its documents are limited as if they came over HTTP, whoever calls it. */
export interface SetupService {
  /** Names of the shares that are configured already. */
  readonly present: readonly string[];
  /** Names of the folders of the NAS below `path`. Rejects with the reason as a plain sentence. */
  folders(nas: NasAnswers, path: string): Promise<readonly string[]>;
  /** The share names that these folders would get, in the same order. */
  shareNames(folders: readonly string[]): readonly string[];
  check(answers: SetupAnswers): Promise<ConfigVerdict>;
  /** The tables that `apply` would add, as TOML with every secret masked. Throws a sentence. */
  preview(answers: SetupAnswers): string;
  /** `host`: the name by which the caller reaches this machine; absent: its own name. */
  addresses(shares: readonly string[], user: string, host?: string): readonly LanAddresses[];
  /** Whether people sign in by this name already: `apply` leaves that user, and the password, as it is. */
  knowsUser(user: string): boolean;
  apply(answers: SetupAnswers, by: ConfigAuthor): Promise<ConfigAnswer>;
}
