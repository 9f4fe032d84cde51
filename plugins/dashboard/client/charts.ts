/** Charts on the page of a share: drawn with uPlot, refreshed while they are visible. */

type Columns = readonly [at: readonly number[], ...values: (readonly (number | null)[])[]];

interface Chart {
  setData(data: Columns): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}

declare const uPlot: new (options: object, data: Columns, target: HTMLElement) => Chart;

type Span = readonly [from: number, until: number];

interface Answer {
  /** What was asked for, in seconds: also where there are figures of a part of it alone. */
  readonly from: number;
  readonly until: number;
  readonly stepSeconds: number;
  readonly points: readonly (readonly [at: number, speed: number, cache: number, dirty: number])[];
}

const HEIGHT = 150;
/** Of the widest time that a language writes ("12:30 PM"), and a gap. */
const LABEL_WIDTH = 80;
const RENEW_MS = 15_000;
/** Seconds between two labels of time. */
const STEPS: readonly number[] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map(
  (minutes) => minutes * 60,
);
const COLUMN = { speed: 1, cache: 2, dirty: 3 } as const;
type ChartName = keyof typeof COLUMN;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

const spans = new WeakMap<HTMLElement, Span>();
const charts = new Map<HTMLElement, Chart>();

function bytes(value: number): string {
  let rest = value;
  let unit = 0;
  while (rest >= 1_024 && unit < UNITS.length - 1) {
    rest /= 1_024;
    unit += 1;
  }
  return `${rest >= 10 || unit === 0 ? Math.round(rest) : rest.toFixed(1)} ${UNITS[unit]}`;
}

function written(name: ChartName, value: number | null): string {
  if (value === null) return '';
  if (name === 'dirty') return String(Math.round(value));
  return name === 'speed' ? `${bytes(value)}/s` : bytes(value);
}

/** A missing point is a gap in the line: nothing is known about that time. */
function columns({ points, stepSeconds }: Answer, column: number): Columns {
  const at: number[] = [];
  const values: (number | null)[] = [];
  for (const point of points) {
    const before = at.at(-1);
    if (before !== undefined && point[0] - before > stepSeconds * 2) {
      at.push(before + stepSeconds);
      values.push(null);
    }
    at.push(point[0]);
    values.push(point[column] ?? null);
  }
  return [at, values];
}

/** Where the reader is, as the ticks are placed. */
function isMidnight(seconds: number): boolean {
  const at = new Date(seconds * 1_000);
  return at.getHours() === 0 && at.getMinutes() === 0;
}

function options(name: ChartName, box: HTMLElement): object {
  const colours = getComputedStyle(document.documentElement);
  const [ink, line, fill] = [
    colours.getPropertyValue('--soft'),
    colours.getPropertyValue('--line'),
    colours.getPropertyValue('--bar-clean'),
  ];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const clock = new Intl.DateTimeFormat(document.documentElement.lang, {
    hour: '2-digit',
    minute: '2-digit',
  });
  const day = new Intl.DateTimeFormat(document.documentElement.lang, { month: 'short', day: 'numeric' });
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    // Without points there is no axis below, and the lowest figure still needs its height.
    padding: [8, 28, 8, 0],
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { range: (_: unknown, least: number, most: number) => spans.get(box) ?? [least, most] },
      y: {
        range: (_: unknown, __: number, most: number) => [
          0,
          Math.max(most * 1.1, name === 'dirty' ? 4 : 1_024),
        ],
      },
    },
    axes: [
      {
        ...axis,
        // Labels say minutes: closer ones would read the same.
        incrs: STEPS,
        space: LABEL_WIDTH,
        values: (_: unknown, ticks: readonly number[]) =>
          ticks.map((tick) => (isMidnight(tick) ? day : clock).format(tick * 1_000)),
      },
      {
        ...axis,
        size: 80,
        values: (_: unknown, ticks: number[]) =>
          ticks.map((tick) => (name === 'dirty' && tick % 1 !== 0 ? '' : written(name, tick))),
      },
    ],
    series: [{}, { stroke: fill, fill: `${fill.trim()}33`, width: 1.5, points: { show: false } }],
  };
}

function describe(box: HTMLElement, name: ChartName, data: Columns): void {
  const values = (data[1] ?? []).filter((value): value is number => value !== null);
  box.dataset['caption'] ??= box.getAttribute('aria-label') ?? '';
  box.setAttribute(
    'aria-label',
    values.length === 0
      ? box.dataset['caption']
      : `${box.dataset['caption']}: ${written(name, Math.min(...values))} – ${written(name, Math.max(...values))}`,
  );
}

/** Undefined also where an update has emptied the box. */
function chartIn(box: HTMLElement): Chart | undefined {
  if (box.childElementCount === 0) forget(box);
  return charts.get(box);
}

function forget(box: HTMLElement): void {
  charts.get(box)?.destroy();
  charts.delete(box);
}

async function renew(group: HTMLElement): Promise<void> {
  // Marked as those of htmx, so that the browser asks nobody for a password.
  const headers = { 'hx-request': 'true' };
  const response = await fetch(`${group.dataset['charts']}?span=${group.dataset['span']}`, { headers });
  if (!response.ok) return;
  const answer = (await response.json()) as Answer;
  const hint = group.querySelector<HTMLElement>('[data-empty]');
  if (hint) hint.hidden = answer.points.length > 1;
  for (const box of group.querySelectorAll<HTMLElement>('[data-chart]')) {
    const name = box.dataset['chart'] as ChartName;
    const data = columns(answer, COLUMN[name]);
    describe(box, name, data);
    spans.set(box, [answer.from, answer.until]);
    const known = chartIn(box);
    if (known) known.setData(data);
    else charts.set(box, new uPlot(options(name, box), data, box));
  }
}

/** Errors are ignored here: the top of the page says when the connection is lost. */
function renewAll(): void {
  for (const box of charts.keys()) if (!box.isConnected) forget(box);
  for (const group of document.querySelectorAll<HTMLElement>('[data-charts]'))
    // The next renewal comes by itself.
    void renew(group).catch(() => undefined);
}

function choose(button: HTMLButtonElement): void {
  const group = button.closest<HTMLElement>('[data-charts]');
  if (!group) return;
  group.dataset['span'] = button.dataset['choose'] ?? 'hour';
  for (const other of group.querySelectorAll('[data-choose]'))
    other.setAttribute('aria-pressed', other === button ? 'true' : 'false');
  renewAll();
}

document.addEventListener('click', (event) => {
  const button =
    event.target instanceof Element ? event.target.closest<HTMLButtonElement>('[data-choose]') : null;
  if (button) choose(button);
});
addEventListener('resize', () => {
  for (const [box, chart] of charts) chart.setSize({ width: box.clientWidth, height: HEIGHT });
});
// Their colours are drawn, not styled.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const box of charts.keys()) forget(box);
  renewAll();
});
setInterval(renewAll, RENEW_MS);
renewAll();

export {};
