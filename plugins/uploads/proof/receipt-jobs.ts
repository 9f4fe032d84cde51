/** Receipts that are being made. */
import { hostname } from 'node:os';
import type { Clock } from 'mountkeeper';
import type { ManagedUploads } from '../transfer/managed.ts';
import { hashListOf, summaryOf } from './hash-list.ts';
import { ProofJobs } from './proof-jobs.ts';
import type { JobBody } from './proof-jobs.ts';
import type { UnprovedFile } from './receipt.ts';

export interface ReceiptBody extends JobBody {
  /** True when all is proved. */
  readonly is_complete: boolean;
  readonly unproved: readonly UnprovedFile[];
  /** XML; null until it is done. */
  readonly hash_list: string | null;
}

export interface ReceiptRequest {
  readonly share: string;
  readonly path: string;
  readonly uploads: Pick<ManagedUploads, 'receipt'>;
}

export class ReceiptJobs {
  readonly #jobs: ProofJobs<ReceiptBody>;
  readonly #clock: () => Clock;
  readonly #version: string;

  /** `version` is the plugin's. */
  constructor({ clock, version }: { readonly clock: () => Clock; readonly version: string }) {
    this.#clock = clock;
    this.#version = version;
    this.#jobs = new ProofJobs({ clock, name: 'receipts' });
  }

  /** Returns the job's id. Throws a plain sentence when too many are being made. */
  start({ share, path, uploads }: ReceiptRequest): string {
    const body: ReceiptBody = {
      share,
      path,
      state: 'running',
      message: 'It is being made.',
      checked: 0,
      files: 0,
      is_complete: false,
      unproved: [],
      hash_list: null,
    };
    const createdAt = this.#clock().now();
    return this.#jobs.start(body, async (options) => {
      const receipt = await uploads.receipt(path, options);
      return {
        message: summaryOf(receipt),
        is_complete: receipt.unproved.length === 0,
        unproved: receipt.unproved,
        hash_list: hashListOf(receipt, { createdAt, host: hostname(), version: this.#version, share }),
      };
    });
  }

  /** Undefined for an unknown one. */
  get(share: string, id: string): ReceiptBody | undefined {
    return this.#jobs.get(share, id);
  }
}
