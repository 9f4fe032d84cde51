/** Finds out whether a server speaks TLS, without sending it anything. */
import { once } from 'node:events';
import { connect } from 'node:tls';

/** `http` also where nobody answers: whoever asks there then says so. */
export async function spokenScheme(address: URL, signal: AbortSignal): Promise<'http' | 'https'> {
  const host = address.hostname.replace(/^\[(.*)\]$/, '$1');
  // Whether the certificate is to be trusted is judged by the request that follows.
  const socket = connect({ host, port: Number(address.port), rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect', { signal });
    return 'https';
  } catch {
    // A plain server takes the handshake for a bad request and ends the connection.
    return 'http';
  } finally {
    socket.destroy();
  }
}
