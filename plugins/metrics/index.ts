import { definePlugin, openTo } from 'mountkeeper';
import { metricsCommand } from './cli.ts';
import { daemonMetrics } from './daemon-metrics.ts';
import { countEvents } from './events.ts';
import { formatFor, render } from './render.ts';
import { shareMetrics } from './share-metrics.ts';

export default definePlugin({
  name: 'metrics',
  version: '1.0.0',
  apiVersion: 1,
  description:
    'Figures of shares, daemon and plugins at /metrics for Prometheus and others that read OpenMetrics.',
  register(ctx) {
    for (const metric of [...shareMetrics(ctx), ...daemonMetrics(ctx)]) ctx.metric(metric);
    countEvents(ctx);
    ctx.route({
      method: 'GET',
      path: '/metrics',
      // Half the processor time of the usual level, for a sixth more bytes.
      options: { ...openTo({ role: 'viewer', verb: 'metrics' }), compression: { gzip: { level: 1 } } },
      handler: async (request, h) => {
        const all = ctx.use('metrics');
        const format = formatFor(request.raw.req.headers.accept);
        const { contentType, text } = await render(all.read(), format, (name, why) => all.leftOut(name, why));
        return h.response(text).type(contentType).header('cache-control', 'no-store');
      },
    });
    ctx.cli(metricsCommand);
  },
});
