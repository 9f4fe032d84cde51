/** What the daemon tells the proxy. Goes over a private socket alone, never to the disk. */
export interface ProxyState {
  /** Who may come in. */
  readonly users: readonly ProxyUser[];
  /** Nobody is asked for a password: then only names that belong to this machine are answered to. */
  readonly isOpen: boolean;
  /** Names, beside localhost and addresses, that clients may call this machine by. */
  readonly hostnames: readonly string[];
  /** Addresses and ranges of the proxies that say who their clients are. */
  readonly trustedProxies: readonly string[];
  /** Where what overwrites a file is kept until all of it is there. */
  readonly spool: string;
  /** Room that uploads leave on that disk. */
  readonly minFreeBytes: number;
  readonly shares: readonly ProxyShare[];
  /** Shares that are away for a moment: whoever asks for them is let wait. */
  readonly returning: readonly string[];
}

export interface ProxyUser {
  readonly name: string;
  readonly password: string;
}

export interface ProxyShare {
  readonly name: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** It is about to be taken down: nobody may begin to write. */
  readonly isSealed: boolean;
  readonly backend: Backend;
}

/** The server behind the proxy that knows the share's files. */
export interface Backend {
  /** Other for every process: a connection to a former one is of no use. */
  readonly instance: string;
  /** The process that it needs to have any files: while that is dead they look gone. */
  readonly behind?: string;
  readonly socketPath?: string;
  readonly port?: number;
  readonly authorization?: string;
  /** False: it refuses to set properties, which Explorer and Finder take for a failed upload. */
  readonly takesProperties: boolean;
  /** True: it does not give a file the time that its client wants it to have. */
  readonly overlooksTimes?: boolean;
}

/** What the proxy answers the daemon. */
export interface ProxyReport {
  readonly shares: readonly ProxyShare[];
}
