import type { IncomingMessage } from 'node:http';
import type { BackendCall } from '../backend.ts';
import type { Upload } from './journal.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * Restores the path to what it was before the upload. False when the backend did not do so; rejects as
 * `ask` does.
 */
export async function undo(
  { kind, headers }: Pick<Upload, 'kind' | 'headers'>,
  path: string,
  ask: (call: BackendCall) => Promise<IncomingMessage>,
): Promise<boolean> {
  const method = kind === 'new' ? 'DELETE' : 'PUT';
  const status = await withoutLostLock(headers, async (sent) => {
    const response = await ask({ method, path, headers: { ...sent, 'content-length': 0 } });
    response.resume();
    return response.statusCode;
  });
  return status === 404 || (status !== undefined && status >= 200 && status < 300);
}

/**
 * Sends what mends a file that its writer had locked. That lock may be gone by now, with its backend or with
 * its writer's right: then it is sent again without the condition. Where somebody else has locked the file
 * since, the backend refuses that with 423.
 */
export async function withoutLostLock(
  headers: Headers,
  send: (headers: Headers) => Promise<number | undefined>,
): Promise<number | undefined> {
  const status = await send(headers);
  if (status !== 412 || headers['if'] === undefined) return status;
  const rest = Object.entries(headers).filter(([name]) => name !== 'if' && name !== 'lock-token');
  return send(Object.fromEntries(rest));
}
