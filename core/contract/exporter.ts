/** Contract of exporters: each serves shares to the LAN by one protocol. */
import type { Mount, ShareSpec } from './mount.ts';

/** Where clients on the network find a server; to be announced. */
export interface Offer {
  /** The service type of DNS service discovery, such as `_smb._tcp`. */
  readonly service: string;
  readonly port: number;
  /** Addresses that it listens on; `0.0.0.0` means every IPv4 address, `::` every address. */
  readonly addresses: readonly string[];
  /** Further TXT records for clients: `key=value`. */
  readonly details?: Readonly<Record<string, string>>;
}

/** `addresses`: addresses and names of network interfaces. */
export interface ListenAddress {
  readonly port: number;
  readonly addresses: readonly string[];
}

/** A client that is connected, or was until a moment ago. Byte counts are those on the wire. */
export interface ClientSession {
  /** Names it to `endSession`, and never another one later. At most 100 letters, digits and `.:_-`. */
  readonly id: string;
  /** Null: it did not log in with a name, or the protocol knows no names. */
  readonly user: string | null;
  readonly address: string;
  /** The shares that it is in. Null: the protocol does not tell. */
  readonly shares: readonly string[] | null;
  /** When it came, in milliseconds since 1970; null: not known. */
  readonly since: number | null;
  /** When it last asked for something; null: not known. */
  readonly lastAt: number | null;
  /** Null: not known. */
  readonly bytesToClient: number | null;
  readonly bytesFromClient: number | null;
}

/** Sign-ins that one server refused, of one address and name. */
export interface RefusedSignIn {
  /** Of the client; not always one that can be read. */
  readonly address: string;
  /**
   * The name that was tried: at most 64 characters, and any may be in it. Null: none was told, or the address has tried
   * too many.
   */
  readonly user: string | null;
  /** All of them were tried with names that nobody has, as devices try their own users. */
  readonly isNobody: boolean;
  readonly count: number;
  /** When the first of them was refused, in milliseconds since 1970. */
  readonly since: number;
}

/** Those that one server refused since it told of some before. Never a password. */
export interface RefusedSignIns {
  /** At most 100. */
  readonly refused: readonly RefusedSignIn[];
  /** Those of further addresses: a few are told apart at a time. */
  readonly others: number;
}

/**
 * Where an exporter's plugin tells of the sign-ins that its server refuses, every few seconds while there are any. No
 * event, which everybody may hear: a name may be a password that somebody typed in the wrong field.
 */
export interface RefusedSignInsService {
  /** `protocol`: as in a share's `protocols`. Never throws. */
  add(protocol: string, refused: RefusedSignIns): void;
}

/** Shows mounted shares to clients of one protocol. Provided under `exporter:<protocol>`. */
export interface Exporter {
  /** Called once a share is mounted. Idempotent. */
  add(spec: ShareSpec, mount: Mount): Promise<void>;
  /**
   * Stops serving the share and closes its files. Called before the share is unmounted; after it when the
   * mount hung. Idempotent.
   */
  remove(shareName: string): Promise<void>;
  /**
   * Called before a share that stays mounted takes no more writes, at most 5 s before: what clients are sending is let
   * end within a moment, or taken back while it still can be, so that no half of it counts as a file. Resolves once
   * nothing is being written. Nobody begins to write from then on, until the share is added again; reading goes on.
   * Left out: the server's clients write files where they stay, as SMB and NFS do.
   */
  quiesce?(shareName: string): Promise<void>;
  /** False: it shows nothing, whatever shares say. Left out: it is on. */
  readonly isEnabled?: boolean;
  /** Where its server listens by the configuration, whether it runs or not. */
  readonly listensAt?: ListenAddress;
  /**
   * What may be announced now: nothing while clients would be refused. An offer is left out, and the log says so,
   * when its service is not of the form `_name._tcp`, its port not from 1 to 65535, or its addresses are no texts.
   */
  offers?(): readonly Offer[];
  /**
   * Who is connected now. Asked only when somebody wants to know, and given 10 s. Rejects with a plain sentence when
   * the server does not say. Left out: nobody can know.
   */
  sessions?(): Promise<readonly ClientSession[]>;
  /**
   * Disconnects this session and no other; its client may come again. Resolves once it is gone: with false when it was
   * before. Rejects with a plain sentence when it is not. Left out: it cannot be done.
   */
  endSession?(id: string): Promise<boolean>;
  /**
   * Resolves once nobody comes in any more who may not by the running document (`config.current`), and by no former
   * password. Rejects with a plain sentence while that is not so: it is asked again a moment later. Called when a
   * document has just been accepted, before it is applied. Left out: nobody waits for it.
   */
  enforce?(): Promise<void>;
}

/**
 * Exporters of plugins that are up, whoever brought them. What they say of their server is checked: `isEnabled`,
 * `listensAt` and `offers()` never throw here, and `sessions()` rejects when what it gives cannot be used.
 */
export interface ExportersService {
  /**
   * False when nobody can serve shares by this protocol: its exporter or its plugin is off, or there is none.
   * Of a plugin that is on and not up, a server may run; that counts.
   */
  mayServe(protocol: string): boolean;
  list(): readonly { readonly protocol: string; readonly exporter: Exporter }[];
  /**
   * Waits, at most 5 s, until no server lets anybody in who may not come in by the running document. Resolves with the
   * protocols of which that is not certain then. One whose plugin is switched off counts until its server is gone.
   * Never rejects.
   */
  enforce(): Promise<readonly string[]>;
}
