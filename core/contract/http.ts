/** Contract of HTTP: what the web server knows about the client that sent a request. */

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
}
