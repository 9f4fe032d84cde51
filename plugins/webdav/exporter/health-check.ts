import type { RequestOptions } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { OWN_HEADER } from '../proxy/state.ts';
import type { ProxyUser } from '../proxy/state.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { request: httpRequest } = process.getBuiltinModule('node:http');

const MAX_ANSWER_BYTES = 4 * 1_048_576;

export interface Address {
  readonly host: string;
  readonly port: number;
  /** With TLS: whether this is the SHA-256 fingerprint of our certificate. Left out: plain HTTP. */
  readonly isOurs?: (fingerprint: string) => boolean;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends one request on its own connection. */
export function ask(options: RequestOptions, body: string, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        ...options,
        // With an agent, even none, Node makes a connection of its own.
        ...(!options.createConnection && { agent: false }),
        signal,
        headers: { ...options.headers, 'content-length': Buffer.byteLength(body) },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
          if (text.length > MAX_ANSWER_BYTES) request.destroy(new Error('the answer is too long'));
        });
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
        response.once('error', reject);
      },
    );
    request.once('error', (error) => reject(signal.aborted ? (signal.reason as Error) : error));
    request.end(body);
  });
}

/** Whether a client that logs in can see this path. `user` is undefined when no password is needed. */
export async function isShown(
  address: Address,
  path: string,
  { user, mark }: { readonly user: ProxyUser | undefined; readonly mark?: string },
  signal: AbortSignal,
): Promise<boolean> {
  const headers = {
    depth: '0',
    ...(mark !== undefined && { [OWN_HEADER]: mark }),
    ...(user
      ? { authorization: `Basic ${Buffer.from(`${user.name}:${user.password}`).toString('base64')}` }
      : {}),
  };
  const { host, port } = address;
  const socket = address.isOurs && (await connectSecurely(address, signal));
  const options = { host, port, method: 'PROPFIND', path, headers };
  const { status } = await ask(socket ? { ...options, createConnection: () => socket } : options, '', signal);
  return status === 207;
}

/**
 * A connection to a server that shows our certificate, whoever has signed it: no password is sent to another one.
 */
async function connectSecurely({ host, port, isOurs }: Address, signal: AbortSignal): Promise<TLSSocket> {
  signal.throwIfAborted();
  const socket = connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] });
  try {
    await once(socket, 'secureConnect', { signal });
    const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
    if (fingerprint !== undefined && isOurs?.(fingerprint) === true) return socket;
    throw new Error('another certificate is shown there');
  } catch (error) {
    socket.destroy();
    throw signal.aborted ? (signal.reason as Error) : error;
  }
}

/**
 * Whether there is any answer, even a refusal. A busy server may also close the connection; one that hangs
 * does not.
 */
export async function isAnswering(address: Address, signal: AbortSignal): Promise<boolean> {
  return isShown(address, '/', { user: undefined }, signal).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNRESET',
  );
}
