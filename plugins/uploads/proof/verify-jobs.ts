/** Comparisons of uploaded files with the remote, while they are under way. */
import type { Clock } from 'mountkeeper';
import type { ManagedUploads } from '../transfer/managed.ts';
import { ProofJobs } from './proof-jobs.ts';
import type { JobBody } from './proof-jobs.ts';
import type { Verified } from './verify.ts';

export interface VerifyBody extends JobBody {
  /** True when it is done, something was compared, nothing differs and nothing waits. */
  readonly is_equal: boolean;
  /** Entries at and below the path that are not on the remote yet. */
  readonly waiting: number;
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
      waiting: 0,
      results: [],
    };
    return this.#jobs.start(body, async (options) => {
      const { files: all, waiting } = await uploads.verify(path, options);
      const wrong = all.filter(({ result }) => result === 'differs').length;
      return {
        message: messageOf({ compared: all.length, wrong, waiting }),
        checked: all.length,
        is_equal: all.length > 0 && wrong === 0 && waiting === 0,
        waiting,
        results: all.map(({ path: one, result, bytes }) => ({ path: one, result, bytes })),
      };
    });
  }

  /** Undefined for an unknown one. */
  get(share: string, id: string): VerifyBody | undefined {
    return this.#jobs.get(share, id);
  }
}

/** Of no file, nothing can be said: that is no good end. */
function messageOf(counts: {
  readonly compared: number;
  readonly wrong: number;
  readonly waiting: number;
}): string {
  const { compared, wrong, waiting } = counts;
  const waits = waiting === 0 ? '' : `, ${waiting} ${waiting === 1 ? 'waits' : 'wait'} to go up`;
  if (compared > 0) return `${compared} files held against the remote, ${wrong} differ${waits}`;
  return (
    `No file was held against the remote (${waiting} wait to go up): of what was brought up there, none lies ` +
    'here any more. A receipt looks at what lies on the remote alone, too.'
  );
}
