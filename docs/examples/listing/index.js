import { createHash } from 'node:crypto';
import { definePlugin, exporterOf, Joi, manageServer, provideExporter, createExportTable } from 'mountkeeper';

/** One `rclone serve http` over the mount points of all healthy shares. It reads them: the daemon itself never may. */
function createExporter(tools, port) {
  const key = 'listing/http';
  const address = `127.0.0.1:${port}`;
  const ask = async (signal) => { await fetch(`http://${address}/`, { signal }); };
  const plan = async () => {
    const upstreams = [...shown.entries].map(([name, { path }]) => `"${name}=${path}"`);
    const files = upstreams.length > 0 ? `:combine,upstreams='${upstreams.join(' ')}':` : ':memory:';
    const args = ['serve', 'http', '--read-only', '--config', '', '--addr', address, files];
    return { key, command: 'rclone', args, fingerprint: createHash('sha256').update(args.join('\0')).digest('hex') };
  };
  const ready = async (_, signal) => {
    while (!(await ask(signal).then(() => true, () => false))) await tools.clock.sleep(100, signal);
  };
  const server = manageServer({ ...tools, key, graceMs: 1_000, plan, ready, ask, cleanUp: async () => {} });
  const shown = createExportTable({
    ...tools, protocol: 'http',
    describe: ({ share }) => ({ path: share.mount_point }),
    apply: async () => server.renew(),
  });
  return exporterOf({ label: 'HTTP', server, shown });
}

export default definePlugin({
  name: 'listing',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Shows shares as web pages on loopback, read only.',
  config: {
    schema: Joi.object({
      port: Joi.number().port().default(8092).description('Port on loopback.').meta({ tier: 'protocol' }),
    }),
  },
  register(ctx) {
    const exporter = provideExporter(ctx, {
      protocol: 'http',
      server: 'HTTP server',
      make: (tools) => createExporter(tools, ctx.config.port),
    });
    ctx.status('listingServing', { default: false, read: () => exporter()?.isServing === true });
  },
});
