import { randomInt } from 'node:crypto';
import { createConnection } from 'node:net';
import { compoundCall, operation, readCompoundAnswer } from './xdr.ts';
import type { CompoundAnswer } from './xdr.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

const NOT_THERE = 2;

/** One question on a connection of its own. Leaves no trace on the server. */
export function ask({ host, port }: Address, operations: readonly Buffer[], signal: AbortSignal): Promise<CompoundAnswer> {
  return new Promise((resolve, reject) => {
    const xid = randomInt(1, 0x7fff_ffff);
    const socket = createConnection({ host, port, noDelay: true });
    let received = Buffer.alloc(0);
    const finish = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      socket.destroy();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason as Error));
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    socket.on('connect', () => socket.write(compoundCall(xid, operations)));
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      try {
        const answer = readCompoundAnswer(received, xid);
        if (answer) finish(() => resolve(answer));
      } catch (error) {
        finish(() => reject(error as Error));
      }
    });
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('end', () => finish(() => reject(new Error('the server closes the connection'))));
  });
}

/** Whether a client finds the share by its name. Rejects when the server does not answer as one. */
export async function isExported(address: Address, share: string, signal: AbortSignal): Promise<boolean> {
  const { status } = await ask(address, [operation.putRoot(), operation.lookup(share), operation.getType()], signal);
  if (status !== 0 && status !== NOT_THERE) throw new Error(`the NFS server answers with error ${status} for the share '${share}'`);
  return status === 0;
}

/** Resolves when the server answers for the root of its tree. */
export async function askForRoot(address: Address, signal: AbortSignal): Promise<void> {
  await ask(address, [operation.putRoot()], signal);
}
