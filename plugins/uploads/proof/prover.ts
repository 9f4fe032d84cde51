/** Makes the proofs that people ask of one share. What waits belongs to each: a proof tells what it leaves out. */
import type { Clock } from 'mountkeeper';
import type { Waiting } from '../transfer/queue.ts';
import type { StepTools } from '../transfer/step-tools.ts';
import type { ProofOptions } from './proof-jobs.ts';
import { about, receiptOf } from './receipt.ts';
import type { Receipt, ReceiptTools } from './receipt.ts';
import { verify } from './verify.ts';
import type { Verification } from './verify.ts';
import { waitingNow } from './whole-look.ts';
import type { WholeLookOptions } from './whole-look.ts';

export interface ProverOptions extends Pick<WholeLookOptions, 'look' | 'unrestored'> {
  readonly clock: Clock;
  /** As of the last look. */
  readonly waiting: () => readonly Waiting[];
  readonly tools: () => Promise<StepTools>;
  /** Aborted with the uploader. */
  readonly end: AbortSignal;
}

export class Prover {
  readonly #options: ProverOptions;
  #underWay = 0;

  constructor(options: ProverOptions) {
    this.#options = options;
  }

  /** A proof is under way: each look has to tell whether it has missed something, also while something waits. */
  get isAsked(): boolean {
    return this.#underWay > 0;
  }

  verify(path: string, options: ProofOptions): Promise<Verification> {
    return this.#proving(options, async (tools) => {
      const files = await verify(path, tools);
      return { files, waiting: about(path, await tools.waiting()).length };
    });
  }

  receipt(path: string, options: ProofOptions): Promise<Receipt> {
    return this.#proving(options, (tools) => receiptOf(path, tools));
  }

  async #proving<T>(
    { signal, onProgress }: ProofOptions,
    work: (tools: ReceiptTools) => Promise<T>,
  ): Promise<T> {
    const { end, waiting } = this.#options;
    const both = AbortSignal.any([signal, end]);
    const tools = await this.#options.tools();
    this.#underWay += 1;
    try {
      return await work({
        ...tools,
        signal: both,
        onProgress,
        waiting: () => waitingNow({ ...this.#options, signal: both, waiting }),
      });
    } finally {
      this.#underWay -= 1;
    }
  }
}
