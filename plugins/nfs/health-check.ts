import { randomInt } from 'node:crypto';
import { askOnce } from 'mountkeeper';
import type { ServerAddress } from 'mountkeeper';
import { compoundCall, operation, readCompoundAnswer } from './xdr.ts';
import type { CompoundAnswer } from './xdr.ts';

const NOT_THERE = 2;

/** A request that leaves no state on the server. */
export function ask(
  address: ServerAddress,
  operations: readonly Buffer[],
  signal: AbortSignal,
): Promise<CompoundAnswer> {
  const xid = randomInt(1, 0x7fff_ffff);
  return askOnce(
    address,
    { request: compoundCall(xid, operations), read: (received) => readCompoundAnswer(received, xid) },
    signal,
  );
}

/** Whether a client can find the share by its name. Rejects when no NFS server answers. */
export async function isExported(
  address: ServerAddress,
  share: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { status } = await ask(
    address,
    [operation.putRoot(), operation.lookup(share), operation.getType()],
    signal,
  );
  if (status !== 0 && status !== NOT_THERE)
    throw new Error(`the NFS server answers with error ${status} for the share '${share}'`);
  return status === 0;
}

/** Resolves when the server answers for the root of its tree. */
export async function askForRoot(address: ServerAddress, signal: AbortSignal): Promise<void> {
  await ask(address, [operation.putRoot()], signal);
}
