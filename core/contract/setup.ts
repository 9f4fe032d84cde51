/** The contract of the first run: from the address of a NAS to a share on the LAN. The same for the page and the terminal. Types alone. */
import type { ConfigAnswer, ConfigAuthor, ConfigVerdict } from './config-changes.ts';

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
  /** Who may use them over SMB from the LAN; left out: nobody but this machine's own users, through the mounts. */
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
