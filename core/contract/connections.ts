/** Contract of connections: whether a NAS can be reached at its address. */
import type { ConnectionConfig } from './config.ts';

/** The address of a NAS, and how it shows that it is there. */
export interface NasAddress {
  readonly host: string;
  readonly port: number;
  /** The server speaks first, answers a request, or does no more than accept the connection. */
  readonly manner: 'greets' | 'answers' | 'accepts';
}

/** One monitor per address, shared by all who ask whether that NAS is there. */
export interface ConnectionMonitor {
  readonly address: NasAddress;
  /**
   * Dials the NAS without rclone, on a connection that is closed at once. Resolves with undefined when it
   * is there, else with the reason in rclone's wording; within 2 s, or when `signal` aborts. Never rejects.
   * Concurrent callers share one dial.
   */
  dial(signal: AbortSignal): Promise<string | undefined>;
}

export interface ConnectionMonitors {
  /** Undefined when the connection's options do not say where it leads, or when it uses a proxy. */
  of(connection: ConnectionConfig): ConnectionMonitor | undefined;
  at(address: NasAddress): ConnectionMonitor;
}
