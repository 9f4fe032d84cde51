import type { NotificationEvent } from 'mountkeeper';

export interface Attempt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly ms: number;
  /** HTTP status; null when there was none. */
  readonly status: number | null;
  /** Null when it went well. */
  readonly problem: string | null;
}

/** One event on its way to the receiver. Times in milliseconds since the epoch. */
export interface Delivery {
  /** The same for every attempt: the receiver tells a repeated one by it. */
  readonly id: string;
  readonly event: NotificationEvent;
  readonly createdAt: number;
  readonly state: 'waiting' | 'delivered' | 'failed';
  /** Attempts since it was created or sent again by hand. */
  readonly tries: number;
  /** When it is tried next, while it waits. */
  readonly nextAt: number;
  /** The receiver has asked for this much patience. */
  readonly isAskedToWait: boolean;
  /** The last ones, newest last. */
  readonly attempts: readonly Attempt[];
}
