import { request as httpRequest } from 'node:http';
import type { RequestOptions } from 'node:http';
import { OWN_HEADER } from '../proxy/state.ts';
import type { ProxyUser } from '../proxy/state.ts';

const MAX_ANSWER_BYTES = 4 * 1_048_576;

export interface Address {
  readonly host: string;
  readonly port: number;
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
        agent: false,
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
  { host, port }: Address,
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
  const { status } = await ask({ host, port, method: 'PROPFIND', path, headers }, '', signal);
  return status === 207;
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
