import { definePlugin, html, Joi, withRelease } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';
import { History, HOUR_MS } from './history.ts';
import type { Point } from './history.ts';

interface Settings {
  readonly height: number;
}

const WIDTH = 360;

const TEXTS = {
  en: {
    title: 'Speed of the last hour: {now} now, {most} at most',
    ago: '1 h ago',
    now: 'now',
    none: 'Not known yet',
  },
  zh: { title: '最近一小时的速度：当前 {now}，最高 {most}', ago: '1 小时前', now: '现在', none: '尚不清楚' },
};

/** Points of a polyline: an hour from left to right, `most` at the top. */
function line(
  points: readonly Point[],
  { now, most, height }: { now: number; most: number; height: number },
): string {
  return points
    .map(({ at, speed }) => {
      const x = WIDTH * (1 - (now - at) / HOUR_MS);
      const y = height - 1 - (height - 2) * (speed / most);
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}

function chart(
  view: View,
  pieces: readonly (readonly Point[])[],
  { now, height }: { now: number; height: number },
): Content {
  const points = pieces.flat();
  const most = Math.max(1, ...points.map(({ speed }) => speed));
  const title = view.plain('title', { now: view.rate(points.at(-1)?.speed ?? 0), most: view.rate(most) });
  return html`<p>${title}</p>
    <svg viewBox=${`0 0 ${WIDTH} ${height}`} width="100%" height=${height} role="img" aria-label=${title}
      preserveAspectRatio="none" fill="none" stroke="currentColor">
      <line x1="0" x2=${WIDTH} y1=${height - 0.5} y2=${height - 0.5} opacity="0.3" />
      ${pieces.map(
        (piece) => html`<polyline points=${line(piece, { now, most, height })} stroke-width="1.5"
          vector-effect="non-scaling-stroke" stroke-linejoin="round" />`,
      )}
    </svg>
    <p><small>${view.t('ago')} – ${view.t('now')}</small></p>`;
}

export default definePlugin<Settings>({
  name: 'speed-chart',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Draws the speed of the last hour on the overview.',
  requires: ['clock'],
  config: {
    schema: Joi.object<Settings>({
      height: Joi.number()
        .integer()
        .min(20)
        .max(400)
        .default(80)
        .meta({ tier: 'live' })
        .description('Height of the chart in pixels.'),
    }),
  },
  register(ctx) {
    const history = ctx.effect('remember speeds', () => withRelease(new History(), () => {}));
    const now = (): number => ctx.use('clock').now();

    ctx.tap('afterCycle', ({ record }) =>
      history()?.add(
        now(),
        record.shares.reduce((sum, { speed }) => sum + speed, 0),
      ),
    );
    ctx.tab({
      id: 'speed-chart',
      place: 'card',
      title: { en: 'Speed', zh: '速度' },
      texts: TEXTS,
      render: (view) => {
        const pieces = history()?.pieces(now()) ?? [];
        if (pieces.length === 0) return html`<p>${view.t('none')}</p>`;
        return chart(view, pieces, { now: now(), height: ctx.config.height });
      },
    });
  },
});
