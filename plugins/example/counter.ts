import { durationMs } from 'mountkeeper';

export interface Counter {
  readonly value: number;
  add(steps: number): void;
  reset(): void;
  /** 0 means never. */
  pauseMs(interval: string): number;
}

export function createCounter(): Counter {
  let value = 0;
  return {
    get value() {
      return value;
    },
    add(steps) {
      value += steps;
    },
    reset() {
      value = 0;
    },
    pauseMs: (interval) => durationMs(interval),
  };
}
