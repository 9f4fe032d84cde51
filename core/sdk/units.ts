/**
 * Units of the configuration: durations (`"500ms"`, `"30s"`, `"15m"`, `"12h"`, `"7d"`), sizes and rates
 * (`"128M"`, `"1.5G"`, `"0"`, binary, as rclone reads them), and their readable forms.
 */
const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const SIZE_UNITS = 'BKMGTPE';
/** rclone keeps sizes in a signed 64-bit integer. */
const SIZE_LIMIT = 2 ** 63;
/** No real value is longer; a text of a million characters would take seconds to parse, again and again. */
const LONGEST = 64;
const DISPLAY_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Milliseconds of `"1h30m"`, `"5s"` or `"0"`. Throws a sentence that names the accepted form. */
export function durationMs(text: string): number {
  if (text.length > LONGEST)
    throw new Error(
      `a text of ${text.length} characters is not a duration; write it like "500ms", "30s", "15m", "12h" or "7d"`,
    );
  const trimmed = text.trim();
  if (trimmed === '0') return 0;
  const parts = [...trimmed.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/gy)];
  const total = parts.reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (DURATION_MS[unit ?? ''] ?? 0),
    0,
  );
  if (
    parts.length === 0 ||
    parts.map((part) => part[0]).join('') !== trimmed ||
    !Number.isSafeInteger(Math.round(total))
  ) {
    throw new Error(`"${text}" is not a duration; write it like "500ms", "30s", "15m", "12h" or "7d"`);
  }
  return total;
}

/** Bytes of `"128M"`, `"1.5G"`, `"1Mi"`, `"100"` (KiB, as rclone reads a bare number) or `"0"`. */
export function sizeBytes(text: string): number {
  if (text.length > LONGEST)
    throw new Error(
      `a text of ${text.length} characters is not a size; write it like "0", "512K", "128M" or "1.5G"`,
    );
  const match = /^(\d+(?:\.\d+)?)\s*(?:(B)|([KMGTPE])(?:iB?)?)?$/i.exec(text.trim());
  const power = SIZE_UNITS.indexOf((match?.[2] ?? match?.[3] ?? 'K').toUpperCase());
  const bytes = Math.round(Number(match?.[1]) * 1024 ** power);
  if (!(bytes < SIZE_LIMIT))
    throw new Error(`"${text}" is not a size; write it like "0", "512K", "128M" or "1.5G"`);
  return bytes;
}

/** Bytes per second of `"10M"` (10 MiB/s), `"512K"`, `"off"` or `"0"`; 0 means unlimited. */
export function rateBytes(text: string): number {
  if (text.length > LONGEST)
    throw new Error(
      `a text of ${text.length} characters is not a rate; write it like "0" (no limit), "512K" or "10M" (10 MiB/s)`,
    );
  const trimmed = text.trim();
  if (trimmed === 'off' || trimmed === '') return 0;
  try {
    const bytes = sizeBytes(trimmed.replace(/\/s$/, ''));
    // A tiny rate must not be rounded to 0, which means unlimited.
    return bytes === 0 && /[1-9]/.test(trimmed) ? 1 : bytes;
  } catch {
    // Of no size either; said in words of a rate.
    throw new Error(`"${text}" is not a rate; write it like "0" (no limit), "512K" or "10M" (10 MiB/s)`);
  }
}

/** `1536` → `"1.5 KiB"`. */
export function formatBytes(bytes: number): string {
  let value = Math.round(bytes);
  let index = 0;
  // 1023.95 would round up to "1024.0"; the next unit shows it better.
  while (value >= (index === 0 ? 1024 : 1023.95) && index < DISPLAY_UNITS.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${index === 0 ? String(value) : value.toFixed(1)} ${DISPLAY_UNITS[index]}`;
}

/** `1536` → `"1.5 KiB/s"`. */
export function formatRate(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond)}/s`;
}

/** `90_061_000` → `"1d 1h 1m"`; below a minute `"12s"`. The two or three greatest units. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([amount]) => amount > 0);
  if (first === -1) return '0s';
  return parts
    .slice(first, first + 3)
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join(' ');
}
