/**
 * Contract of HTTP: what the web server knows about the client that sent a request, who may use which route, and the
 * certificates of servers that speak TLS.
 */
import type { Notice } from './notifications.ts';

/** What somebody may do, from least to most: look, also work the shares, everything. */
export type Role = 'viewer' | 'operator' | 'admin';

/** What a route is for; a token may be made for these alone. */
export type Verb =
  | 'status'
  | 'metrics'
  | 'logs'
  | 'reconnect'
  | 'refresh'
  | 'warmup'
  | 'bandwidth'
  | 'queue'
  | 'upload'
  | 'proof'
  | 'webhooks'
  | 'config'
  | 'files'
  | 'sessions';

/**
 * Who sent a request: `request.auth.credentials`. Null there while nobody is asked, and for the command line of
 * the administrator, which comes over the command socket.
 */
export interface Principal {
  readonly name: string;
  readonly role: Role;
  /** `password`: the one of `web.password`; `user`: of `web.users`; `token`: of `web.tokens`. */
  readonly kind: 'password' | 'user' | 'token';
  /** Of a token that is bound to shares: it sees nothing of others. */
  readonly shares?: readonly string[];
  /** Of a token for these verbs alone: its role counts for nothing then. */
  readonly verbs?: readonly Verb[];
  /** Signed in by cookie: the id of that `SignIn`. */
  readonly signIn?: string;
}

/** Somebody who is signed in by cookie. */
export interface SignIn {
  /** Names it; lets nobody in. */
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  /** Where it was begun from. */
  readonly address: string;
  /** What the browser says of itself: at most 200 characters, of any kind. */
  readonly browser: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  /** The same of its last request. */
  readonly usedAt: number;
}

export interface SignInsService {
  /** Those used last come first. */
  list(): readonly SignIn[];
  /** What is being sent over it ends, too. False when there is none of this id. */
  end(id: string): boolean;
}

/** Who may use a route. A route that declares nothing is for the role `admin` alone. */
export interface RouteAccess {
  /** The least role. */
  readonly role: Role;
  /** Absent: no token that is made for verbs reaches it. */
  readonly verb?: Verb;
  /**
   * What a token that is bound to shares gets here. The name of the path's parameter that holds a share: its own
   * shares, and 404 for others. `filtered`: the route itself tells nothing of other shares (`sharesOf`). Absent:
   * it is refused.
   */
  readonly share?: string | { readonly filtered: true };
  /**
   * True: a page for people, or a part of one. A browser that is not signed in is led from there to the page to sign
   * in; programs get 401.
   */
  readonly isPage?: boolean;
}

/** The client of one request. */
export interface RequestClient {
  /** Its address; behind a proxy of `web.trusted_proxies` the address that the proxy forwards. */
  readonly address: string;
  /**
   * True: it came over plain HTTP from another machine, and not from a trusted proxy, so others could read what it
   * sends.
   */
  readonly isInClear: boolean;
  /**
   * Called by a plugin that authenticates clients: this client is authenticated. Until its request is
   * answered, its connection is never closed to make room; afterwards connections of unknown clients are
   * closed first.
   */
  markKnown(): void;
  /**
   * Whether it may be a process of a third party's plugin, which runs as a user of its own on this machine; also where
   * that cannot be told of a client on this machine, since it has gone already.
   */
  mayBePlugin(): Promise<boolean>;
}

/** Who sent a request, for a record: of `request.auth.credentials`, whichever plugin has left them there. */
export interface NamedPrincipal {
  readonly name: string;
  /** What kind of account it is, such as a user or a token. */
  readonly kind?: string;
  readonly role?: string;
}

/** Where a request came from: an address, or the command socket. */
export interface RequestOrigin {
  /** The client's, also behind a trusted proxy. */
  readonly address?: string;
  /** Over the command socket: the numbers of the users who may open it. One of them sent the request. */
  readonly users?: readonly number[];
}

/** Whoever asked for something over HTTP. */
export interface Requester {
  /** Of the request; the same wherever it is told of. */
  readonly id: string;
  readonly from: RequestOrigin;
  /** Absent where no plugin says who it is. */
  readonly principal?: NamedPrincipal;
}

/**
 * A request that has been answered. Texts are a stranger's: at most 200 characters long, and any characters may be
 * in them. Never in it: the query, the headers, the body.
 */
export interface AnsweredRequest extends Requester {
  readonly method: string;
  /** The pattern of its route, such as `/api/reconnect/{share}`; undefined where no route has this path. */
  readonly route: string | undefined;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  /** What the route says of it: `request.app.about`. */
  readonly about: Readonly<Record<string, string>>;
  /** Undefined when the client was gone before the answer. */
  readonly status: number | undefined;
  /** False for a status from 400 on, an answer `{ ok: false }`, and where the route says so: `request.app.isDone`. */
  readonly isDone: boolean;
  /** It was not let in: 401, 403, 421, 429, and what was answered as if it were not there (`request.app.isRefused`). */
  readonly isRefused: boolean;
  /** It asks and changes nothing: `isQuestion` of the route's document, or of `request.app`. */
  readonly isQuestion: boolean;
  readonly hasAuthorization: boolean;
}

declare module '@hapi/hapi' {
  interface Request {
    readonly client: RequestClient;
  }
  /** What a route says of the request, for those who keep a record of changes. */
  interface RequestApplicationState {
    /** What it is about, beside the parameters of its path. No secrets. */
    about?: Readonly<Record<string, string>>;
    /** False: it was not done, whatever the status of the answer. */
    isDone?: boolean;
    /** True: it was refused, though the answer says that there is no such thing. */
    isRefused?: boolean;
    /** True: it changes nothing. */
    isQuestion?: boolean;
    /** True: its body holds a password that was tried, as `Authorization` would. */
    hasCredentials?: boolean;
    /** Set by a plugin that authenticates: whether it would be let in now. For routes whose work waits for its turn. */
    isStillLetIn?: () => boolean;
    /**
     * Set by an answer that lasts, as event streams do: ends it in order, for whoever may not have it any more. Absent:
     * the connection is cut.
     */
    endAnswer?: () => void;
  }
  interface PluginSpecificConfiguration {
    access?: RouteAccess;
  }
}

/** The web server of the daemon itself. */
export interface WebService {
  /** Why it does not listen where `[web]` says, and tries again; one plain sentence. Undefined while it does. */
  readonly problem: string | undefined;
}

/** `tls` of a server's section: two files, or a certificate that the daemon makes. */
export interface TlsConfig {
  /** PEM, absolute; with the chain after it. */
  certificate?: string;
  key?: string;
  self_made: boolean;
}

/** A certificate with its chain, and its key, that belong together. Both are PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 of the certificate, as `AB:CD:…`. */
  readonly fingerprint: string;
  /** The end of the certificate, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** The certificate of one server, which follows its files. */
export interface KeptCertificate {
  /** The last good one; undefined as long as there was none. */
  readonly pair: KeyPair | undefined;
  /** Why what is in the files now is not in use; undefined when it is. */
  readonly problem: string | undefined;
  /** What the administrator should know now. */
  readonly notices: readonly Notice[];
  close(): Promise<void>;
}

export interface CertificateOptions {
  /** Names the server in messages: the path of its key, such as `web.tls`. */
  readonly label: string;
  /** Names and addresses that a certificate made here holds in any case. */
  readonly names: readonly string[];
  /** `pair`, `problem` or `notices` have changed. */
  readonly onChange: () => void;
}

export interface CertificatesService {
  /**
   * Reads the certificate, makes one first where that is asked for, and reads it again whenever the files change.
   * Never rejects: see `problem`.
   */
  keep(tls: TlsConfig, options: CertificateOptions): Promise<KeptCertificate>;
  /** Of all servers that speak TLS now. */
  list(): readonly { readonly label: string; readonly fingerprint: string; readonly endsAt: number }[];
}
