/** What every protocol's real client can do, as a table: a proof that holds for one row is asked of all. */
import type { Scratch } from '../platform/scratch-folder.ts';
import { nfs } from './nfs.ts';
import { smb } from './smb.ts';
import { webdav } from './webdav.ts';

export type Protocol = 'smb' | 'nfs' | 'webdav';

export interface Access {
  readonly scratch: Scratch;
  readonly ports: Readonly<Record<Protocol, number>>;
  /** `name%password`, where the protocol knows users. */
  readonly user: string;
}

/** A client that came in and stays. What it cannot do is rejected with the protocol's own word for it. */
export interface Session {
  list(): Promise<string>;
  /** From the local disk into the share's root. */
  put(file: string, name: string): Promise<void>;
  /** The content's checksum. */
  get(name: string): Promise<string>;
  close(): void;
}

export interface Client {
  readonly label: 'SMB' | 'NFS' | 'WebDAV';
  readonly protocol: Protocol;
  /** The server's own process, by its arguments. */
  isServer(args: readonly string[]): boolean;
  isShown(access: Access, share: string): Promise<boolean>;
  /** A local folder with all that is in it, as a new folder of the share. */
  upload(
    access: Access,
    from: string,
    to: { readonly share: string; readonly folder: string },
  ): Promise<void>;
  /** Path below the folder → checksum of what the client gets. */
  download(
    access: Access,
    from: { readonly share: string; readonly folder: string },
    paths: readonly string[],
  ): Promise<ReadonlyMap<string, string>>;
  /** Reads one file as it comes. */
  stream(access: Access, share: string, path: string): AsyncIterable<Buffer>;
  session(access: Access, share: string): Promise<Session>;
}

/** One row for each protocol. */
export const CLIENTS: readonly Client[] = [smb, nfs, webdav];
