/**
 * An HTTP server whose connections are encrypted. Everything that listens to its `connection` event, Node's own
 * parser and the connection pool among them, is given the encrypted socket from the first byte on: so a
 * connection counts, and its time runs, before its handshake is over.
 */
import type { IncomingMessage, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import { createSecureContext, DEFAULT_CIPHERS, TLSSocket } from 'node:tls';
import type { SecureContext } from 'node:tls';
import type { KeyPair } from '../../contract/http.ts';
import { isLoopback } from './address.ts';
import type { TrustedProxies } from './client-address.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const http = process.getBuiltinModule('node:http');

/** Older versions have known weaknesses. */
const OLDEST = 'TLSv1.2';
/**
 * Those that Node.js takes by default, but for those whose key exchange is by the certificate's own RSA key: who
 * records the traffic and gets that key later could read all of it, and such an exchange has been broken by its timing
 * again and again. Every client of the last ten years offers others.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!kRSA`;
const PROTOCOLS = ['http/1.1'];

type Certificate = Pick<KeyPair, 'cert' | 'key'>;

export class SecureServer extends http.Server {
  #context: SecureContext | undefined;

  /** Without a certificate each connection is closed at once, until there is one. */
  constructor(options: ServerOptions, certificate?: Certificate) {
    super(options);
    if (certificate) this.setCertificate(certificate);
  }

  /** Holds for new connections; those that are open go on. Throws when the two do not belong together. */
  setCertificate({ cert, key }: Certificate): void {
    this.#context = createSecureContext({ cert, key, minVersion: OLDEST, ciphers: CIPHERS });
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    const emit = (...passed: unknown[]): boolean =>
      Reflect.apply(super.emit, this, [event, ...passed]) as boolean;
    if (event !== 'connection') return emit(...args);
    const [socket] = args as [Socket];
    if (this.#context) return emit(encrypted(socket, this.#context));
    socket.destroy();
    return true;
  }
}

function encrypted(socket: Socket, secureContext: SecureContext): TLSSocket {
  const secured = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: PROTOCOLS });
  // A client that speaks something else, or no version that is taken: there is nobody to tell.
  secured.on('error', () => undefined);
  // Node resets plain TCP sockets alone.
  secured.resetAndDestroy = () => {
    socket.resetAndDestroy();
    return secured.destroy();
  };
  return secured;
}

/** Whether a request came over an encrypted connection of this process. */
export function isEncrypted({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket;
}

/**
 * Whether others on the network could read the request: it came over plain HTTP, from another machine. The way to a
 * trusted proxy is its administrator's business.
 */
export function isInClear(req: IncomingMessage, proxies: TrustedProxies): boolean {
  const { remoteAddress = '' } = req.socket;
  return !isEncrypted(req) && !isFromHere(req.socket) && !proxies.has(remoteAddress);
}

/**
 * By loopback, or by the address of this machine that was asked for: that way leaves it no more, and the kernel drops
 * what comes from elsewhere in the name of its own address.
 */
function isFromHere({ localAddress, remoteAddress = '' }: Socket): boolean {
  return isLoopback(remoteAddress) || (remoteAddress !== '' && remoteAddress === localAddress);
}
