/** Contract of HTTP: what the web server knows about the client that sent a request, and who may use which route. */

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
  | 'files';

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
}

/** The client of one request. */
export interface RequestClient {
  /** Its address; behind a proxy of `web.trusted_proxies` the address that the proxy forwards. */
  readonly address: string;
  /**
   * Called by a plugin that authenticates clients: this client is authenticated. Until its request is
   * answered, its connection is never closed to make room; afterwards connections of unknown clients are
   * closed first.
   */
  markKnown(): void;
}

declare module '@hapi/hapi' {
  interface Request {
    readonly client: RequestClient;
  }
  interface PluginSpecificConfiguration {
    access?: RouteAccess;
  }
}
