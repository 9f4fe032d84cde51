/** Transfers that last, and what their users feel of them. */
import { createHash } from 'node:crypto';
import { sleep, until } from '../platform/wait.ts';
import { CLIENTS } from './protocols.ts';
import type { Access } from './protocols.ts';

/** By then a transfer is under way: its client has started, and the mount has found its pace with the NAS. */
const UNDER_WAY_BYTES = 32 * 1_048_576;

export interface Transfer {
  readonly bytes: number;
  readonly whole: number;
  /** The longest time that it was waited for a next piece, once it was under way. */
  readonly longestMs: number;
  readonly failures: readonly string[];
}

export interface TransferWish {
  readonly open: () => AsyncIterable<Buffer>;
  /** What each transfer must be in the end. */
  readonly sha256: string;
  readonly bytesPerSecond: number;
}

/**
 * Fetches a file again and again at a steady pace until it is told to stop; the one under way is then carried
 * to its end.
 */
export class Transfers {
  readonly done: Promise<Transfer>;
  private isStopped = false;
  private readonly wish: TransferWish;
  private readonly tally = { bytes: 0, whole: 0, longestMs: 0, failures: [] as string[] };

  constructor(wish: TransferWish) {
    this.wish = wish;
    this.done = this.run();
  }

  /** Bytes that have come so far, of all transfers. */
  get bytes(): number {
    return this.tally.bytes;
  }

  /** True once the client has started and its pace has settled. */
  get isUnderWay(): boolean {
    return this.tally.bytes >= UNDER_WAY_BYTES;
  }

  /** Carries the transfer under way to its end; resolves with what was seen. */
  stop(): Promise<Transfer> {
    this.abandon();
    return this.done;
  }

  /** As `stop`, for who does not want to know. */
  abandon(): void {
    this.isStopped = true;
  }

  private async run(): Promise<Transfer> {
    while (!this.isStopped) {
      try {
        await this.one();
        this.tally.whole += 1;
      } catch (error) {
        this.tally.failures.push(`after ${this.tally.bytes} bytes: ${(error as Error).message}`);
        await sleep(50);
      }
    }
    return this.tally;
  }

  private async one(): Promise<void> {
    const { open, sha256, bytesPerSecond } = this.wish;
    const hash = createHash('sha256');
    const start = performance.now();
    let asked = Infinity;
    let bytes = 0;
    for await (const piece of open()) {
      if (this.isUnderWay)
        this.tally.longestMs = Math.max(this.tally.longestMs, Math.round(performance.now() - asked));
      hash.update(piece);
      bytes += piece.length;
      this.tally.bytes += piece.length;
      const aheadMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - start);
      if (aheadMs > 5) await sleep(aheadMs);
      asked = performance.now();
    }
    if (hash.digest('hex') !== sha256) throw new Error('other content');
  }
}

export interface Outcome {
  readonly label: string;
  readonly transfer: Transfer;
}

/** One transfer over each protocol, once all are under way; the returned function ends them. */
export async function transfersOf(
  access: Access,
  { share, path, ...wish }: Omit<TransferWish, 'open'> & { readonly share: string; readonly path: string },
): Promise<() => Promise<Outcome[]>> {
  const all = CLIENTS.map(({ label, stream }) => ({
    label,
    transfers: new Transfers({ ...wish, open: () => stream(access, share, path) }),
  }));
  // A test that failed must not leave them running.
  access.scratch.defer(() => all.forEach(({ transfers }) => transfers.abandon()));
  for (const { label, transfers } of all)
    await until(`the transfer over ${label} is under way`, () => transfers.isUnderWay, {
      timeoutMs: 60_000,
      everyMs: 20,
    });
  return () =>
    Promise.all(all.map(async ({ label, transfers }) => ({ label, transfer: await transfers.stop() })));
}

/** A sentence for each protocol whose longest pause passed the limit, in milliseconds. */
export function pauses(outcomes: readonly Outcome[], limitMs: number): string[] {
  return outcomes
    .filter(({ transfer }) => transfer.longestMs > limitMs)
    .map(({ label, transfer }) => `${label} waited ${transfer.longestMs} ms`);
}
