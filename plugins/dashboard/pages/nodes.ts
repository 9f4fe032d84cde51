/**
 * Small building blocks of pages. Bars and lines are SVG: their sizes are attributes, which the content
 * security policy allows.
 */
import { html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';

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

export interface MeterPart {
  readonly kind: string;
  readonly size: number;
}

const METER_WIDTH = 100;

/** Hidden from screen readers: the figures are next to it as text. */
export function meter({
  whole,
  parts,
}: {
  readonly whole: number;
  readonly parts: readonly MeterPart[];
}): Content {
  let x = 0;
  const bars = parts
    .filter(({ size }) => size > 0)
    .map(({ kind, size }) => {
      // Even a very small part must be visible.
      const width = Math.min(METER_WIDTH - x, Math.max(1, (size / whole) * METER_WIDTH));
      const bar = html`<rect class=${kind} x=${x.toFixed(2)} width=${width.toFixed(2)} height="8" />`;
      x += width;
      return bar;
    });
  return html`<svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect class="whole" width="100" height="8" />${bars}</svg>`;
}

const LINE_HEIGHT = 24;
const LINE_STEP = 2;

/** The newest value is at the right. Nothing is drawn when all values are zero. */
export function sparkline(values: readonly number[]): Content {
  const most = Math.max(...values, 0);
  if (values.length < 2 || most === 0) return null;
  const points = values.map(
    (value, index) =>
      `${index * LINE_STEP},${(LINE_HEIGHT - 1 - (value / most) * (LINE_HEIGHT - 2)).toFixed(1)}`,
  );
  return html`<svg class="spark" viewBox=${`0 0 ${(values.length - 1) * LINE_STEP} ${LINE_HEIGHT}`}
      preserveAspectRatio="none" aria-hidden="true">
    <polyline points=${points.join(' ')} /></svg>`;
}

/** A text with a button that copies it; `shown` is displayed instead when given. */
export function copyable(text: string, view: View, shown = text): Content {
  return html`<span class="copy"><code><bdi>${shown}</bdi></code><button type="button" class="quiet" data-copy=${text}
    data-done=${view.t('copied')}>${view.t('copy')}<span class="unseen"> ${text}</span></button></span>`;
}
