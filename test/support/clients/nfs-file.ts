/**
 * What a client of NFS does with one file that it has open, a step at a time. A refusal is the server's
 * number, in an `NfsFault`.
 */
import { say } from './nfs-wire.ts';
import type { FileRange, OpenFile } from './nfs-wire.ts';
import type { NfsClient } from './nfs-session.ts';

export interface Written {
  readonly bytes: number;
  /** By which a client knows that the server has started anew. */
  readonly verifier: string;
}

/** Unstable: the server may forget it until a commit. */
export async function writeUnstable(
  { wire }: NfsClient,
  file: OpenFile,
  offset: number,
  data: Buffer,
): Promise<Written> {
  const answer = (await wire.call(say.putHandle(file.handle), say.writeAt(file.state, offset, data))).done(2);
  const bytes = answer.uint();
  answer.uint();
  return { bytes, verifier: answer.raw(8).toString('hex') };
}

/** Gives the server's verifier. */
export async function commit({ wire }: NfsClient, { handle }: Pick<OpenFile, 'handle'>): Promise<string> {
  return (await wire.call(say.putHandle(handle), say.commit())).done(2).raw(8).toString('hex');
}

/** Sets the size of an open file, in bytes. Rejects with an `NfsFault`. */
export async function setLength(
  { wire }: NfsClient,
  { handle, state }: OpenFile,
  bytes: number,
): Promise<void> {
  await wire.call(say.putHandle(handle), say.setLength(state, bytes));
}

/** Of a file that nothing was locked in. */
export async function close({ wire }: NfsClient, { handle, state }: OpenFile): Promise<void> {
  await wire.call(say.putHandle(handle), say.close(state, 2));
}

/** At most one for each opening. */
export async function lock({ wire, client }: NfsClient, file: OpenFile, range: FileRange): Promise<void> {
  await wire.call(say.putHandle(file.handle), say.lock(client, 'locker', file.state, range));
}
