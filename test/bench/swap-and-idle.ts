/** A swap of the HTTP generation, and what the daemon costs while nothing happens. */
import { Daemon } from '../support/daemon/daemon.ts';
import { Nas } from '../support/nas/nas.ts';
import { residentBytes, threadsCpuMs } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { median, ms } from './figures.ts';
import type { Figure } from './figures.ts';

const SWAPS = 40;
const SHARES = 20;
const IDLE_MS = 30_000;
/** V8 gives back what a start has used in its young generation one to two minutes later. */
const AFTER_START_MS = 120_000;

export async function benchSwap(scratch: Scratch): Promise<Figure[]> {
  const daemon = await Daemon.create(scratch, {
    name: 'swap',
    connections: [{ name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: '1' } }],
    shares: [],
  });
  await daemon.start();
  const spans: number[] = [];
  const plain: number[] = [];
  for (let index = 0; index < SWAPS; index += 1) {
    const enabled = index % 2 === 0;
    const live = performance.now();
    await daemon.submit(
      daemon.text({
        sections: { 'plugins.example': { enabled: !enabled }, bandwidth: { up: `${index + 1}M` } },
      }),
    );
    plain.push(performance.now() - live);
    const start = performance.now();
    await daemon.submit(
      daemon.text({ sections: { 'plugins.example': { enabled }, bandwidth: { up: `${index + 1}M` } } }),
    );
    await until('the swap', async () => ((await daemon.get('/example')).status === 200) === enabled, {
      timeoutMs: 10_000,
      everyMs: 1,
    });
    spans.push(performance.now() - start);
  }
  await daemon.stop();
  return [
    {
      what: 'swap of the plugin set and the HTTP generation',
      ours: ms(median(spans)),
      beside: `${ms(median(plain))} (a live change by the same way, no swap)`,
      ratio: '–',
      aim: '< 50 ms',
      note:
        'From the POST of a document that switches a plugin until its route answers or is ' +
        'gone: validation, the write of the file with fsync, projection and swap together. ' +
        `Median of ${SWAPS}.`,
    },
  ];
}

export async function benchIdle(scratch: Scratch): Promise<Figure[]> {
  const nas = await Nas.create(scratch, { name: 'idle-nas', files: { 'x.bin': 1_000 } });
  const names = Array.from({ length: SHARES }, (_, index) => `share-${index}`);
  // The defaults of the product, not the quick poll of the tests.
  const daemon = await Daemon.create(scratch, {
    name: 'idle',
    connections: [nas.connection('nas')],
    shares: names.map((name) => ({ name, connection: 'nas' })),
    sections: { supervisor: { poll_interval: '2s' } },
  });
  await daemon.start();
  await daemon.healthy(names, 60_000);
  const mountPids = await Promise.all(names.map((name) => daemon.rclonePid(name)));
  await sleep(AFTER_START_MS);
  const cpu = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + threadsCpuMs(pid), 0);
  const before = { daemon: threadsCpuMs(daemon.pid), mounts: cpu(mountPids) };
  await sleep(IDLE_MS);
  const share = (spentMs: number): string => `${((spentMs / IDLE_MS) * 100).toFixed(2)} %`;
  const spent = { daemon: threadsCpuMs(daemon.pid) - before.daemon, mounts: cpu(mountPids) - before.mounts };
  const [own, mounts] = [
    residentBytes(daemon.pid),
    mountPids.reduce((sum, pid) => sum + residentBytes(pid), 0),
  ];
  await daemon.stop();
  return [
    {
      what: `idle processor time with ${SHARES} shares`,
      ours: `${share(spent.daemon)} of a core`,
      beside: `${share(spent.mounts)} (the ${SHARES} rclone processes)`,
      ratio: '–',
      aim: '≤ 0.5 %',
      note:
        `Over ${IDLE_MS / 1000} s without any request, two minutes after the start, ` +
        "by the scheduler's own clock. " +
        'The rclone processes are the price of the mounts, ' +
        'including what our polls cost them.',
    },
    {
      what: `idle memory with ${SHARES} shares`,
      ours: `${Math.round(own / 1e6)} MB`,
      beside: `${Math.round(mounts / 1e6)} MB (the ${SHARES} rclone processes)`,
      ratio: '–',
      aim: '≤ 90 MB',
      note: "Resident memory of the daemon's own process, two minutes and a half after the start.",
    },
  ];
}
