/** One HTTP request over loopback, on its own connection. */
import type { IncomingHttpHeaders } from 'node:http';

// Not imported, which costs a start much: see docs/contributing.md.
const { request } = process.getBuiltinModule('node:http');

export interface InjectRequest {
  readonly method?: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly payload?: string | object;
}

export interface InjectResponse {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly payload: string;
  json(): unknown;
}

export function inject(
  port: number,
  { method = 'GET', url, headers = {}, payload }: InjectRequest,
): Promise<InjectResponse> {
  const isJson = typeof payload === 'object';
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        method,
        path: url,
        agent: false,
        headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({
            statusCode: response.statusCode ?? 0,
            headers: response.headers,
            payload: text,
            json: () => JSON.parse(text) as unknown,
          });
        });
      },
    );
    outgoing.once('error', reject);
    outgoing.end(isJson ? JSON.stringify(payload) : payload);
  });
}
