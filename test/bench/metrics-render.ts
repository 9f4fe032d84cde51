/** `/metrics` of the real daemon with 200 shares: how long a scrape takes. */
import { Daemon } from '../support/daemon/daemon.ts';
import { cpuMs } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { median } from './figures.ts';
import type { Figure } from './figures.ts';

const SHARES = 200;
const SCRAPES = 40;

async function scrapeMs(daemon: Daemon, path: string): Promise<number> {
  const spans: number[] = [];
  for (let scrape = 0; scrape < SCRAPES; scrape += 1) {
    const began = performance.now();
    const { status } = await daemon.get(path);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    spans.push(performance.now() - began);
    await sleep(50);
  }
  return median(spans);
}

export async function benchMetrics(scratch: Scratch): Promise<Figure[]> {
  const daemon = await Daemon.create(scratch, {
    name: 'metrics',
    connections: [{ name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: '1' } }],
    shares: Array.from({ length: SHARES }, (_, index) => ({
      name: `share number ${index}`,
      connection: 'nas',
    })),
    sections: { 'plugins.mount': { enabled: false }, log: { level: 'error' } },
  });
  await daemon.start(30_000);
  await until('all shares are listed', async () => (await daemon.status()).shares.length === SHARES, {
    timeoutMs: 20_000,
  });
  await sleep(2_000);
  const cpuBefore = cpuMs(daemon.pid);
  const [ours, beside] = [await scrapeMs(daemon, '/metrics'), await scrapeMs(daemon, '/healthz')];
  const cpuEach = (cpuMs(daemon.pid) - cpuBefore) / SCRAPES;
  const kib = ((await daemon.get('/metrics')).text.length / 1024).toFixed(0);
  await daemon.stop();
  return [
    {
      what: `/metrics with ${SHARES} shares (${kib} KiB)`,
      ours: `${ours.toFixed(1)} ms, ${cpuEach.toFixed(1)} ms CPU`,
      beside: `${beside.toFixed(1)} ms (/healthz)`,
      ratio: '-',
      aim: '< 20 ms',
      note:
        `One scrape over loopback, median of ${SCRAPES}, ` +
        'compressed as a collector asks for it; ' +
        'processor time of the daemon with all else that it does meanwhile. ' +
        'The shares are configured and in the status record but not mounted.',
    },
  ];
}
