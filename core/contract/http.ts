/**
 * Contract of HTTP: what the web server knows about the client that sent a request, and the certificates of servers
 * that speak TLS.
 */
import type { Notice } from './notifications.ts';

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
