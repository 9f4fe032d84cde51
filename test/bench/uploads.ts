/** Many small saves until all are on the NAS, beside rclone's own write cache. */
import { open, readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../support/daemon/daemon.ts';
import { Nas } from '../support/nas/nas.ts';
import type { NasProtocol } from '../support/nas/nas.ts';
import { threadsCpuMs } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import { prepareBareMounts } from './bare-mount.ts';
import { runClient } from './client.ts';
import { ms, times } from './figures.ts';
import type { Figure } from './figures.ts';

const SAVES = fileURLToPath(new URL('../../../test/bench/saves.py', import.meta.url));
const NEW_FILES = 1_000;
const OVERWRITTEN = 50;
const [LEAST_BYTES, MOST_BYTES] = [4_096, 16_384];
const WRITE_BACK_MS = 1_000;
const PATIENCE = { timeoutMs: 300_000, everyMs: 50 };
/** The options that the daemon's share is measured against. */
const RCLONE = ['--vfs-write-back', '1s', '--transfers', '4'];

interface Spans {
  /** The saves themselves. */
  readonly savedMs: number;
  /** From the first save until the last file is on the NAS. */
  readonly arrivedMs: number;
  /** Processor time of what brings them there, without the NAS. */
  readonly cpuMs: number;
}

interface Saves {
  readonly nas: Nas;
  /** Of the mount. */
  readonly root: string;
  readonly folder: string;
  readonly count: number;
  /** Stands at the head of each file. */
  readonly word: string;
  /** The processes that bring them there. */
  readonly pids: readonly number[];
}

async function startsWith(file: string, word: string): Promise<boolean> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(word.length), 0, word.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === word;
  } finally {
    await handle.close();
  }
}

async function measure({ nas, root, folder, count, word, pids }: Saves): Promise<Spans> {
  const cpu = (): number => pids.reduce((sum, pid) => sum + threadsCpuMs(pid), 0);
  const [start, before] = [performance.now(), cpu()];
  const output = await runClient(
    '/usr/bin/python3',
    [SAVES, `${root}/${folder}`, ...[count, LEAST_BYTES, MOST_BYTES].map(String), word],
    { timeoutMs: PATIENCE.timeoutMs },
  );
  const arrived = new Set<string>();
  await until(
    `${count} files are on the NAS`,
    async () => {
      // Not there before the first of them is.
      const names = await readdir(nas.path(folder)).catch(() => []);
      for (const name of names.filter((one) => one.endsWith('.dat') && !arrived.has(one)))
        if (await startsWith(nas.path(folder, name), `${word} `)) arrived.add(name);
      return arrived.size === count;
    },
    PATIENCE,
  );
  return {
    savedMs: Number(output),
    arrivedMs: performance.now() - start,
    cpuMs: cpu() - before,
  };
}

type Both = Readonly<Record<'fresh' | 'again', Spans>>;

async function measureBoth(about: Omit<Saves, 'count' | 'word'>): Promise<Both> {
  const fresh = await measure({ ...about, count: NEW_FILES, word: 'first' });
  const again = await measure({ ...about, count: OVERWRITTEN, word: 'second' });
  return { fresh, again };
}

async function ours(scratch: Scratch, nas: Nas): Promise<Both> {
  const daemon = await Daemon.create(scratch, {
    name: 'uploads',
    connections: [nas.connection('nas')],
    shares: [{ name: 'media', connection: 'nas' }],
    sections: {
      mount: { write_back: `${WRITE_BACK_MS}ms`, transfers: 4 },
      supervisor: { poll_interval: '2s' },
    },
  });
  await daemon.start();
  await daemon.healthy(['media']);
  const pids = [daemon.pid, await daemon.rclonePid('media')];
  const spans = await measureBoth({
    nas,
    root: daemon.mountPoint('media'),
    folder: 'ours',
    pids,
  });
  await daemon.synced(PATIENCE.timeoutMs);
  await daemon.stop();
  return spans;
}

async function bare(scratch: Scratch, nas: Nas): Promise<Both> {
  const mounts = await (
    await prepareBareMounts(scratch.path('uploads-bare'), {
      nas,
      count: 1,
      args: RCLONE,
    })
  )();
  const [root = ''] = mounts.points;
  const spans = await measureBoth({
    nas,
    root,
    folder: 'bare',
    pids: mounts.pids,
  });
  await mounts.end();
  return spans;
}

async function figuresOver(scratch: Scratch, protocol: NasProtocol): Promise<Figure[]> {
  const nas = await Nas.create(scratch, {
    name: `uploads-${protocol}`,
    protocol,
    listingsFor: '1h',
  });
  const [theirs, mine] = [await bare(scratch, nas), await ours(scratch, nas)];
  await nas.stop();
  const name = protocol === 'sftp' ? 'SFTP' : 'WebDAV';
  const beside = "rclone's write cache: `--vfs-write-back 1s --transfers 4`";
  const cpu = (spans: Spans, count: number): string => `${(spans.cpuMs / count).toFixed(1)} ms CPU a file`;
  const row = (what: string, which: 'fresh' | 'again', count: number): Figure => ({
    what: `${name}: ${what}`,
    ours: `${(mine[which].arrivedMs / 1000).toFixed(1)} s, ${cpu(mine[which], count)}`,
    beside: `${(theirs[which].arrivedMs / 1000).toFixed(1)} s, ${cpu(theirs[which], count)} (${beside})`,
    ratio: times(theirs[which].arrivedMs / mine[which].arrivedMs),
    aim: which === 'fresh' ? '≥ 3×' : 'a few seconds after `write_back`',
    note:
      'From the first save, each under another name that is then renamed, until the last one is on the NAS; ' +
      `\`write_back\` and \`transfers\` are the same, ${LEAST_BYTES / 1024} to ${MOST_BYTES / 1024} KiB a file. ` +
      'The processor time is that of the daemon and its rclone, and of the other rclone.',
  });
  return [
    row(`${NEW_FILES} new files until all are on the NAS`, 'fresh', NEW_FILES),
    row(`${OVERWRITTEN} files overwritten until all are on the NAS`, 'again', OVERWRITTEN),
    {
      what: `${name}: ${NEW_FILES} saves through the mount point`,
      ours: ms(mine.fresh.savedMs),
      beside: `${ms(theirs.fresh.savedMs)} (${beside})`,
      ratio: times(theirs.fresh.savedMs / mine.fresh.savedMs),
      aim: '≥ 3×',
      note: 'The same saves, until the last call of the program that saves has returned.',
    },
  ];
}

export async function benchUploads(scratch: Scratch): Promise<Figure[]> {
  return [...(await figuresOver(scratch, 'sftp')), ...(await figuresOver(scratch, 'webdav'))];
}
