import { Agent, request } from 'node:http';

export interface RcAddress {
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** One mount's remote control, over one kept connection. */
export interface RcClient {
  /** Rejects with rclone's own error text, or the signal's reason. */
  call<T>(path: string, parameters: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<T>;
  close(): void;
}

const MAX_BODY_BYTES = 32 * 1_048_576;

export function createRcClient(address: RcAddress): RcClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 4, maxFreeSockets: 1 });
  const authorization = `Basic ${Buffer.from(`${address.user}:${address.password}`).toString('base64')}`;
  return {
    call: async <T>(path: string, parameters: Readonly<Record<string, unknown>>, signal: AbortSignal) => {
      signal.throwIfAborted();
      const body = Buffer.from(JSON.stringify(parameters));
      const headers = { authorization, 'content-type': 'application/json', 'content-length': body.length };
      const { status, text } = await post({ host: '127.0.0.1', port: address.port, method: 'POST', path: `/${path}`, headers, agent, signal }, body);
      if (status === 200) return JSON.parse(text) as T;
      throw new Error(errorIn(text) ?? `the remote control answered ${status}`);
    },
    close: () => agent.destroy(),
  };
}

function post(options: Parameters<typeof request>[1] & { signal: AbortSignal }, body: Buffer): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(options.signal.aborted ? (options.signal.reason as Error) : error);
    const asked = request(options, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > MAX_BODY_BYTES) response.destroy(new Error('the answer of the remote control is too large'));
        else pieces.push(piece);
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() }));
      response.on('error', fail);
    });
    asked.on('error', fail);
    asked.end(body);
  });
}

function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: string }).error;
  } catch {
    return undefined;
  }
}
