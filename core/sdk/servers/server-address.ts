/** A server's listen address: whether it can be used on this machine, and how to send a request to it. */
import { createConnection, createServer, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/** An address of this machine, or `0.0.0.0` or `::` for all of them. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Which settings an address comes from, for error messages about it. */
export interface AddressOrigin {
  /** The section of the configuration whose `listen` and `port` these are. */
  readonly section: string;
  /** Which program is likely to use the port already, such as `a Samba of the system`. */
  readonly suspect?: string;
}

export interface Question<A> {
  readonly request: Buffer;
  /**
   * Called with everything received so far: returns undefined while the answer is incomplete, throws when
   * it is no valid answer.
   */
  readonly read: (received: Buffer) => A | undefined;
}

/** The address at which a client on this machine reaches the server. */
export function ownAddress({ host, port }: ServerAddress): ServerAddress {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return host === '::' ? { host: '::1', port } : { host, port };
}

/**
 * The one spelling of an address by which two can be compared: IPv6 has several, such as `FD00::2` and `fd00:0::2`.
 * What is no address stays as it is.
 */
export function spellingOf(address: string): string {
  // URLs have one, and take no zones.
  if (isIP(address) !== 6 || address.includes('%')) return address;
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

/** Why the address cannot be used; undefined when it can. */
export function addressProblem({ host }: ServerAddress, { section }: AddressOrigin): string | undefined {
  const isAnywhere = host === '0.0.0.0' || host === '::' || host.startsWith('127.');
  const isHere =
    isAnywhere ||
    Object.values(networkInterfaces())
      .flat()
      .some((one) => one !== undefined && spellingOf(one.address) === spellingOf(host));
  return isHere
    ? undefined
    : `${host}: this machine has no such address; correct ${section}.listen, or bring the network up`;
}

/** Why the port cannot be used at the address; undefined when it can. */
export async function portProblem(
  { host, port }: ServerAddress,
  { section, suspect }: AddressOrigin,
): Promise<string | undefined> {
  const code = await tryToListen(host, port);
  const program = suspect === undefined ? 'another program' : `another program (${suspect}?)`;
  if (code === 'EADDRINUSE')
    return `port ${port} on ${host} is taken by ${program}; stop that, or set ${section}.port`;
  if (code === 'EACCES')
    return `port ${port} may not be used by this user; run the daemon as root, or set ${section}.port above 1023`;
  return code === undefined ? undefined : `port ${port} on ${host} cannot be used (${code})`;
}

function tryToListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/**
 * Sends one request on its own TCP connection, as a client would. Rejects when there is no answer before
 * the signal.
 */
export function askOnce<A>(
  { host, port }: ServerAddress,
  { request, read }: Question<A>,
  signal: AbortSignal,
): Promise<A> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const socket = createConnection({ host, port, noDelay: true });
    let received = Buffer.alloc(0);
    const finish = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason as Error));
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('connect', () => socket.write(request));
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      try {
        const answer = read(received);
        if (answer !== undefined) finish(() => resolve(answer));
      } catch (error) {
        finish(() => reject(error as Error));
      }
    });
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('end', () => finish(() => reject(new Error('the server closes the connection'))));
  });
}
