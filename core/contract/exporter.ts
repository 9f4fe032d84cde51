/** The contract of exporters: who shows shares to the LAN by one protocol. */
import type { Mount, ShareSpec } from './mount.ts';

/** Where clients in the network find a server: for whoever announces it. */
export interface Offer {
  /** As DNS service discovery calls it, such as `_smb._tcp`. */
  readonly service: string;
  readonly port: number;
  /** Addresses that it listens on; `0.0.0.0` is all of IPv4, `::` all there are. */
  readonly addresses: readonly string[];
  /** What a client must know beside, as `key=value`. */
  readonly details?: Readonly<Record<string, string>>;
}

/** Shows healthy shares to clients of one protocol. Provided under `exporter:<protocol>`. */
export interface Exporter {
  /** Called once a share is mounted. Idempotent. */
  add(spec: ShareSpec, mount: Mount): Promise<void>;
  /** Lets go of the mount. Called before it is taken down; after it when it hung. Idempotent. */
  remove(shareName: string): Promise<void>;
  /** What may be announced now: nothing while clients would be refused. */
  offers?(): readonly Offer[];
}
