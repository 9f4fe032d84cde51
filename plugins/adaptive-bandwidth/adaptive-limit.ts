import { formatRate } from 'mountkeeper';
import type { Clock, LiveShare, Logger } from 'mountkeeper';
import { decide, WINDOW } from './decide.ts';
import type { Decision, Limit, Sample } from './decide.ts';
import { Sampler } from './sampler.ts';

/** A limit that no upload has confirmed for this long says nothing about the line any more. */
const FORGOTTEN_AFTER_MS = 10 * 60_000;

export interface AdaptiveLimitOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly sampleMs: () => number;
}

/** Runs the rules: takes samples, keeps their window, holds the limit. Bytes per second; 0 is unlimited. */
export class AdaptiveLimit {
  readonly #options: AdaptiveLimitOptions;
  readonly #sampler = new Sampler();
  #configured = 0;
  #limit: Limit = { current: 0, cap: 0 };
  #window: readonly Sample[] = [];
  #judgedAtMs: number;

  constructor(options: AdaptiveLimitOptions) {
    this.#options = options;
    this.#judgedAtMs = options.clock.monotonic();
  }

  get current(): number {
    return this.#limit.current;
  }

  /** Why uploads are limited; undefined while they are not. */
  get notice(): string | undefined {
    if (this.#limit.current === this.#configured) return undefined;
    const whole =
      this.#configured === 0 ? 'there is no limit otherwise' : `${formatRate(this.#configured)} are allowed`;
    return (
      `The line to the NAS was congested: uploads are held to ${formatRate(this.#limit.current)} for ` +
      `now (${whole}).`
    );
  }

  /**
   * The upload limit for a budget. A changed budget is used as it is, because what was learnt belonged to
   * the former one.
   */
  limitFor(configured: number): number {
    if (configured !== this.#configured) {
      this.#configured = configured;
      this.#startAnew();
    }
    return this.#limit.current;
  }

  /** Takes one measurement of the uploads; waits for nothing. */
  look(): void {
    const { clock, shares, sampleMs } = this.#options;
    const nowMs = clock.monotonic();
    const sample = this.#sampler.look(shares(), { nowMs, lastsMs: sampleMs(), limit: this.#limit.current });
    if (sample) this.#take(sample, nowMs);
  }

  #take(sample: Sample, nowMs: number): void {
    this.#window = [...this.#window, sample].slice(-WINDOW);
    const decision = decide(this.#window, this.#limit, this.#configured);
    if (decision.verdict !== 'too few samples' && decision.verdict !== 'not busy') this.#judgedAtMs = nowMs;
    this.#put(decision);
    if (nowMs - this.#judgedAtMs < FORGOTTEN_AFTER_MS || this.#limit.current === this.#configured) return;
    this.#options.log.info(
      { up: rateText(this.#configured) },
      'upload limit back to the configured one, nothing was uploaded for long',
    );
    this.#startAnew();
  }

  #put({ limit, verdict, mean, variation }: Decision): void {
    const from = this.#limit.current;
    this.#limit = limit;
    if (limit.current === from) return;
    const fields = {
      from: rateText(from),
      to: rateText(limit.current),
      uploads: formatRate(mean),
      variation: Number(variation.toFixed(2)),
    };
    this.#options.log.info(
      fields,
      verdict === 'congested'
        ? 'upload limit lowered, the line is congested'
        : 'upload limit raised, uploads stay below it',
    );
  }

  #startAnew(): void {
    this.#limit = { current: this.#configured, cap: this.#configured };
    this.#window = [];
    this.#sampler.reset();
    this.#judgedAtMs = this.#options.clock.monotonic();
  }
}

function rateText(rate: number): string {
  return rate === 0 ? 'unlimited' : formatRate(rate);
}
