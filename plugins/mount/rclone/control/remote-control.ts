import { rm } from 'node:fs/promises';
import { withoutDetour } from '../error-messages.ts';
import { RcWire } from './remote-control-http.ts';

export interface RcAddress {
  /** Port on 127.0.0.1. */
  readonly port: number;
  /** Path of a unix socket; used instead of the port when it is given. */
  readonly socket?: string | undefined;
  readonly user: string;
  readonly password: string;
}

/** rclone has answered, and refuses: whatever the call was to do has ended. */
export class RcRefusal extends Error {}

/** One mount's remote control. */
export interface RcClient {
  /** Rejects with rclone's own error message (`RcRefusal`), or the signal's reason. */
  call<T>(path: string, parameters: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<T>;
  close(): void;
}

export function createRcClient(address: RcAddress): RcClient {
  const wire = new RcWire(address);
  const credentials = Buffer.from(`${address.user}:${address.password}`).toString('base64');
  const head =
    ` HTTP/1.1\r\nHost: 127.0.0.1:${address.port}\r\nAuthorization: ` +
    `Basic ${credentials}\r\nContent-Type: application/json\r\nContent-Length: `;
  return {
    call: async <T>(path: string, parameters: Readonly<Record<string, unknown>>, signal: AbortSignal) => {
      const body = JSON.stringify(parameters);
      const { status, text } = await wire.ask(
        `POST /${path}${head}${Buffer.byteLength(body)}\r\n\r\n${body}`,
        signal,
      );
      if (status === 200) return JSON.parse(text) as T;
      throw new RcRefusal(withoutDetour(errorIn(text) ?? `the remote control answered ${status}`));
    },
    close: () => wire.close(),
  };
}

/** Whether it answers on a connection of its own before the signal aborts. */
export async function controlAnswers(address: RcAddress, signal: AbortSignal): Promise<boolean> {
  const rc = createRcClient(address);
  try {
    await rc.call('core/pid', {}, signal);
    return true;
  } catch {
    // However it fails: it gives no answer.
    return false;
  } finally {
    rc.close();
  }
}

/** Removes the socket file of an rclone that has ended; a killed one leaves it behind. */
export async function removeSocket({ socket }: RcAddress): Promise<void> {
  // The next rclone takes a name of its own.
  if (socket !== undefined) await rm(socket, { force: true }).catch(() => undefined);
}

function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: string }).error;
  } catch {
    // No JSON: the status of the answer says enough.
    return undefined;
  }
}
