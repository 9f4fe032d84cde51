/** Work that compares many files, asked about over HTTP: it may take longer than anyone waits for an answer. */
import { randomUUID } from 'node:crypto';
import type { Clock } from 'mountkeeper';

/** One that nobody asks about any more is given up, or forgotten, after this time. */
const UNASKED_MS = 60_000;
const MOST_JOBS = 4;

export interface JobBody {
  readonly share: string;
  readonly path: string;
  readonly state: 'running' | 'done' | 'failed';
  readonly message: string;
  /** Files looked at so far. */
  readonly checked: number;
  readonly files: number;
}

export interface ProofOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (checked: number, files: number) => void;
}

interface Job<B> {
  body: B;
  readonly end: AbortController;
  forget: () => void;
  /** Whoever asked for it has heard how it ended. */
  isTold: boolean;
}

export interface ProofJobsOptions {
  readonly clock: () => Clock;
  /** What they are, in the plural. */
  readonly name: string;
}

export class ProofJobs<B extends JobBody> {
  readonly #jobs = new Map<string, Job<B>>();
  readonly #options: ProofJobsOptions;

  constructor(options: ProofJobsOptions) {
    this.#options = options;
  }

  /**
   * Returns the job's id. `work` resolves with the fields of the body that its end changes. Throws a plain
   * sentence when too many are running.
   */
  start(body: B, work: (options: ProofOptions) => Promise<Partial<B>>): string {
    this.#makeRoom();
    const id = randomUUID();
    const job: Job<B> = { body, end: new AbortController(), forget: () => undefined, isTold: false };
    this.#jobs.set(id, job);
    this.#keep(id, job);
    void run(job, work);
    return id;
  }

  /** Undefined for an unknown one. */
  get(share: string, id: string): B | undefined {
    const job = this.#jobs.get(id);
    if (job?.body.share !== share) return undefined;
    this.#keep(id, job);
    job.isTold = job.body.state !== 'running';
    return job.body;
  }

  /** The oldest one whose end was heard gives way. */
  #makeRoom(): void {
    if (this.#jobs.size < MOST_JOBS) return;
    const [done] = [...this.#jobs].filter(([, { isTold }]) => isTold);
    if (done === undefined)
      throw new Error(
        `${MOST_JOBS} ${this.#options.name} are being made or wait to be fetched: try again when one of them is.`,
      );
    const [id, job] = done;
    job.forget();
    this.#jobs.delete(id);
  }

  #keep(id: string, job: Job<B>): void {
    job.forget();
    job.forget = this.#options.clock().after(UNASKED_MS, () => {
      this.#jobs.delete(id);
      job.end.abort();
    });
  }
}

async function run<B extends JobBody>(
  job: Job<B>,
  work: (options: ProofOptions) => Promise<Partial<B>>,
): Promise<void> {
  try {
    const ended = await work({
      signal: job.end.signal,
      onProgress: (checked, files) => (job.body = { ...job.body, checked, files }),
    });
    job.body = { ...job.body, ...ended, state: 'done' };
  } catch (error) {
    const { name, message } = error as Error;
    const isStopped = name === 'AbortError';
    job.body = {
      ...job.body,
      state: 'failed',
      message: isStopped ? 'It was broken off before it was made.' : message,
    };
  }
}
