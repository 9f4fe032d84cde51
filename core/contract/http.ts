/** The contract's part about HTTP: what the web server knows of the client that sent a request. */

/** The client of one request. */
export interface RequestClient {
  /** Its address; behind a proxy of `web.trusted_proxies` the one that the proxy names. */
  readonly address: string;
  /**
   * For a plugin that lets clients in by a password: says that this one is in. Until its request is
   * answered, its connection makes way for nobody; afterwards those of strangers make way first.
   */
  markKnown(): void;
}

declare module '@hapi/hapi' {
  interface Request {
    readonly client: RequestClient;
  }
}
