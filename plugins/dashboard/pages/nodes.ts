/**
 * Small building blocks of pages. Bars and lines are SVG: their sizes are attributes, which the content
 * security policy allows.
 */
import { html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';

const ICONS: Readonly<Record<string, string>> = {
  good: 'M5 12.5l4.5 4.5L19 7.5',
  warn: 'M12 4L2.5 20h19zM12 10v4.5M12 17.2v.3',
  unsaved: 'M12 19V6M6 11l6-6 6 6',
  bad: 'M12 4v10M12 18.5v.5',
  wait: 'M12 6v6l4 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18',
  info: 'M12 11v7M12 6.5v.5',
  overview: 'M4 13h7V4H4zM13 20h7v-9h-7zM4 20h7v-4H4zM13 8h7V4h-7z',
};

export function drawing(path: string): Content {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${path} /></svg>`;
}

export function icon(name: string): Content {
  return drawing(ICONS[name] ?? ICONS['info'] ?? '');
}

/**
 * A text that changes without its part being rendered again. `name`: that of its value in the part's `values`; the
 * page's script finds it by that.
 */
export function live(name: string, text: string | undefined): Content {
  return html`<span data-live=${name}>${text}</span>`;
}

/** As `View.time`, to the second: of what ends within a minute. */
export function toTheSecond(at: number): Content {
  const iso = new Date(at).toISOString();
  const text = `${iso.slice(0, 19).replace('T', ' ')} UTC`;
  return html`<time datetime=${iso} data-at=${String(at)} data-style="second">${text}</time>`;
}

const METER_WIDTH = 100;
const METER_PARTS = ['dirty', 'clean'] as const;

/** The attributes of a meter's bars. */
export function putMeter(
  values: Record<string, string>,
  whole: number,
  sizes: Readonly<Record<(typeof METER_PARTS)[number], number>>,
): void {
  let x = 0;
  for (const kind of METER_PARTS) {
    const size = sizes[kind];
    // Even a very small part must be visible.
    const width = size > 0 ? Math.min(METER_WIDTH - x, Math.max(1, (size / whole) * METER_WIDTH)) : 0;
    values[`${kind}@x`] = hundredths(x);
    values[`${kind}@width`] = hundredths(width);
    x += width;
  }
}

/** As `toFixed(2)` would, without its zeros. */
function hundredths(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Hidden from screen readers: the figures are next to it as text. */
export function meter(values: Values): Content {
  return html`<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class="whole" width="100" height="8" />${METER_PARTS.map(
      (kind) =>
        html`<rect class=${kind} data-live=${kind} x=${values[`${kind}@x`]} width=${
          values[`${kind}@width`]
        } height="8" />`,
    )}</svg>`;
}

/** Small whole numbers, which are quick to write, to send and to read: a line is 24 px high. */
const LINE_HEIGHT = 48;
const LINE_ROOM = 2;

export function hasLine(values: readonly number[]): boolean {
  return values.length > 1 && values.some((value) => value > 0);
}

/** The text of each point that a line had so far: making them takes longer than a whole line does. */
const POINTS: string[] = [];

function pointAt(x: number, y: number): string {
  return (POINTS[x * LINE_HEIGHT + y] ??= `${x},${y}`);
}

/** The newest value is at the right. */
export function putLine(values: Record<string, string>, line: readonly number[]): void {
  if (!hasLine(line)) return;
  const scale = (LINE_HEIGHT - 2 * LINE_ROOM) / Math.max(...line);
  const points = line.map((value, x) => pointAt(x, LINE_HEIGHT - LINE_ROOM - Math.round(value * scale)));
  values['spark@viewBox'] = `0 0 ${line.length - 1} ${LINE_HEIGHT}`;
  values['line@points'] = points.join(' ');
}

/** Nothing is drawn when all values are zero. */
export function sparkline(values: Values): Content {
  if (values['line@points'] === undefined) return null;
  return html`<svg class="spark" data-live="spark" viewBox=${values['spark@viewBox']}
      preserveAspectRatio="none" aria-hidden="true">
    <polyline data-live="line" points=${values['line@points']} /></svg>`;
}

/** A text with a button that copies it; `shown` is displayed instead when given. */
export function copyable(text: string, view: View, shown: Content = text): Content {
  return html`<span class="copy"><code><bdi>${shown}</bdi></code><button type="button" class="quiet" data-copy=${text}
    data-done=${view.t('copied')}>${view.t('copy')}<span class="unseen"> ${text}</span></button></span>`;
}
