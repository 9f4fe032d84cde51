/**
 * A WebDAV server before another one: it keeps none of the times that it is sent, as rclone before 1.66 and most
 * servers, and changes what it is given on request, as FTP in ASCII mode does.
 */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ForgetfulWebdav {
  readonly port: number;
  /** How many files have been brought so far. */
  puts(): number;
  close(): Promise<void>;
}

/** Stands before the server at the port on loopback. `close` ends it. */
export async function startForgetful(
  behind: number,
  change?: (text: string) => string,
): Promise<ForgetfulWebdav> {
  let puts = 0;
  const pass = async (asked: IncomingMessage, answer: ServerResponse): Promise<void> => {
    const { 'x-oc-mtime': _, 'content-length': __, 'transfer-encoding': ___, ...headers } = asked.headers;
    const pieces: Buffer[] = [];
    for await (const piece of asked) pieces.push(piece as Buffer);
    let body = Buffer.concat(pieces);
    if (asked.method === 'PUT') puts += 1;
    if (asked.method === 'PUT' && change !== undefined)
      body = Buffer.from(change(body.toString('latin1')), 'latin1');
    const { method, url: path } = asked;
    const onward = request({ host: '127.0.0.1', port: behind, method, path, headers });
    onward.on('response', (told) => {
      answer.writeHead(told.statusCode ?? 502, told.headers);
      told.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    onward.setHeader('content-length', body.length);
    onward.end(body);
  };
  const server = createServer((asked, answer) => void pass(asked, answer).catch(() => answer.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    puts: () => puts,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
