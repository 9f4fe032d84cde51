import type { UnkeptNames } from 'mountkeeper';
import type { ShareAccess } from 'mountkeeper/sdk';

/** The state that the daemon sends to the proxy, over a private socket; never written to disk. */
export interface ProxyState {
  /** Who may log in. */
  readonly users: readonly ProxyUser[];
  /**
   * Users of the machine who may log in, too; the daemon asks PAM for their passwords. Left out: the daemon does not
   * know them yet, and those who were told for the same group stay. A former daemon does not say so.
   */
  readonly systemUsers?: readonly string[] | undefined;
  /** The group of the machine that they are members of. */
  readonly systemGroup?: string | undefined;
  /** True: no password is needed; then only host names of this machine are accepted. */
  readonly isOpen: boolean;
  /** Host names, besides localhost and addresses, by which clients may address this machine. */
  readonly hostnames: readonly string[];
  /** Passwords that others on the network can read are refused. A former daemon does not say so. */
  readonly refusesInClear?: boolean;
  /** Addresses and ranges of trusted proxies. */
  readonly trustedProxies: readonly string[];
  /** What clients are shown. Left out: plain HTTP, or the one of the former state stays in use. */
  readonly certificate?: ProxyKeyPair;
  /** Folder for bodies that overwrite a file, until they are complete. */
  readonly spool: string;
  /** Free bytes that uploads must leave on that disk. */
  readonly minFreeBytes: number;
  readonly shares: readonly ProxyShare[];
  /** By the share's name; not there: everybody who is let in. Said of shares that are away, too. */
  readonly access: Readonly<Record<string, ShareAccess>>;
  /** Shares that are away for a moment: their clients wait. */
  readonly returning: readonly string[];
  /** Shares that are configured, and not shown now: what they hold is not gone. A former daemon does not say so. */
  readonly absent?: readonly string[];
  /** What the daemon's own requests carry in `OWN_HEADER`, so that they are nobody's session. Nobody else knows it. */
  readonly mark: string;
}

/** A certificate with its chain, and its key, both PEM. */
export interface ProxyKeyPair {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 of the certificate, as `AB:CD:…`. */
  readonly fingerprint: string;
}

export interface ProxyUser {
  readonly name: string;
  readonly password: string;
}

/** So long a question about a user of the machine waits for its answer: longer than the daemon gives PAM. */
export const SYSTEM_ANSWER_MS = 15_000;

/** Whether this password is right, for the daemon to find out. */
export interface SystemQuestion {
  readonly id: string;
  readonly name: string;
  readonly password: string;
  /** It was right a while ago: whoever guesses does not delay this one. */
  readonly wasRight: boolean;
}

/** Null: it could not be found out. */
export interface SystemAnswer {
  readonly id: string;
  readonly isRight: boolean | null;
}

export interface ProxyShare {
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  /**
   * It is about to be mounted anew: it can be read, and who wants to write waits. Also read-only then, for a former
   * proxy, which does not know this.
   */
  readonly isFrozen?: boolean;
  readonly backend: Backend;
  /** Differs for every place on a NAS: another may have the share's name by now. A former daemon does not say so. */
  readonly place?: string;
  /** Nothing may get such a name. A former daemon does not say so. */
  readonly refusedNames?: readonly UnkeptNames[];
}

/** The server behind the proxy that has the share's files. */
export interface Backend {
  /** Differs for every process: connections to a former one are useless. */
  readonly instance: string;
  /** The process of the mount that it reads from: while that one is dead, the files look deleted. */
  readonly behind?: string;
  /**
   * The process that reads from the NAS below that mount, and may be replaced: while it is dead, names may be missing
   * from what the backend says.
   */
  readonly reader?: string;
  readonly socketPath?: string;
  /** In place of it, of a former daemon's backend. */
  readonly port?: number;
  readonly authorization?: string;
  /** False: it refuses to set properties, which Explorer and Finder treat as a failed upload. */
  readonly takesProperties: boolean;
}

/** Who has been here of late. Times in milliseconds since 1970, bytes on the wire. */
export interface ProxySession {
  readonly id: string;
  /** Null: the server has no users. */
  readonly user: string | null;
  readonly share: string;
  readonly address: string;
  readonly since: number;
  readonly lastAt: number;
  readonly toClient: number;
  readonly fromClient: number;
}

export const OWN_HEADER = 'x-mountkeeper-mark';

/** What was received of an upload that did not come to its end, and waits until it can be put in its place. */
export interface KeptContent {
  readonly share: string;
  /** In the share, without a slash at its beginning. */
  readonly path: string;
  /** Where it lies on this machine. */
  readonly file: string;
}

/** The proxy's answer to the daemon. */
export interface ProxyReport {
  readonly shares: readonly ProxyShare[];
  /** Of the certificate that clients are shown; left out as long as there is none. */
  readonly fingerprint?: string;
}
