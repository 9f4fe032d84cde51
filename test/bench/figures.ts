/** What a benchmark hands back, and small statistics. */
export interface Figure {
  readonly what: string;
  readonly ours: string;
  /** What it is measured against, in the same run. */
  readonly beside: string;
  readonly ratio: string;
  readonly aim: string;
  /** What the figure means and how it was had. */
  readonly note: string;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export const ms = (value: number): string =>
  value < 10 ? `${value.toFixed(2)} ms` : `${Math.round(value)} ms`;
export const times = (value: number): string => `${value.toFixed(2)}×`;
