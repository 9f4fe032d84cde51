/** Comparisons of uploaded files with the remote, while they are under way. */
import type { Clock } from 'mountkeeper';
import type { ManagedUploads } from '../transfer/managed.ts';
import { ProofJobs } from './proof-jobs.ts';
import type { JobBody } from './proof-jobs.ts';
import type { Verified } from './verify.ts';

export interface VerifyBody extends JobBody {
  /** True when it is done and nothing differs. */
  readonly is_equal: boolean;
  /** Empty until it is done. */
  readonly results: readonly Pick<Verified, 'path' | 'result' | 'bytes'>[];
}

export interface VerifyRequest {
  readonly share: string;
  readonly path: string;
  readonly uploads: Pick<ManagedUploads, 'verify'>;
}

export class VerifyJobs {
  readonly #jobs: ProofJobs<VerifyBody>;

  constructor(clock: () => Clock) {
    this.#jobs = new ProofJobs({ clock, name: 'comparisons' });
  }

  /** Returns the job's id. Throws a plain sentence when too many are under way. */
  start({ share, path, uploads }: VerifyRequest): string {
    const body: VerifyBody = {
      share,
      path,
      state: 'running',
      message: 'Files are being held against the remote.',
      checked: 0,
      files: 0,
      is_equal: false,
      results: [],
    };
    return this.#jobs.start(body, async (options) => {
      const all = await uploads.verify(path, options);
      const wrong = all.filter(({ result }) => result === 'differs').length;
      return {
        message: `${all.length} files held against the remote, ${wrong} differ`,
        checked: all.length,
        is_equal: wrong === 0,
        results: all.map(({ path: one, result, bytes }) => ({ path: one, result, bytes })),
      };
    });
  }

  /** Undefined for an unknown one. */
  get(share: string, id: string): VerifyBody | undefined {
    return this.#jobs.get(share, id);
  }
}
