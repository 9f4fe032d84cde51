import type { NotificationEvent } from 'mountkeeper';

export interface Attempt {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly ms: number;
  /** HTTP status; null when there was none. */
  readonly status: number | null;
  /** Null on success. */
  readonly problem: string | null;
}

/** One event on its way to the receiver. Times in milliseconds since the epoch. */
export interface Delivery {
  /** The same for every attempt, so that the receiver can detect repeats. */
  readonly id: string;
  readonly event: NotificationEvent;
  readonly createdAt: number;
  readonly state: 'waiting' | 'delivered' | 'failed';
  /** Attempts since it was created or resent by hand. */
  readonly tries: number;
  /** When the next attempt is due, while it waits. */
  readonly nextAt: number;
  /** The receiver asked to wait this long. */
  readonly isAskedToWait: boolean;
  /** The last attempts, newest last. */
  readonly attempts: readonly Attempt[];
}
