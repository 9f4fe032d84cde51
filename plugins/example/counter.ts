import { durationMs } from 'mountkeeper';

declare module 'mountkeeper' {
  interface Services {
    counter: Counter;
  }
  interface Events {
    'example:counted': number;
  }
}

export interface Counter {
  readonly value: number;
  /** The new value. */
  add(steps: number): number;
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
      return (value += steps);
    },
    reset() {
      value = 0;
    },
    pauseMs: (interval) => durationMs(interval),
  };
}
