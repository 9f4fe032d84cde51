/** What the servers on the LAN have in common when they are measured: the remote, the two sides, the rounds, the table's rows. */
import { writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { Daemon } from '../support/daemon.ts';
import type { DaemonTraits } from '../support/daemon.ts';
import { Nas } from '../support/nas.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { prepareBareMounts } from './bare-mount.ts';
import { median, times } from './figures.ts';
import type { Figure } from './figures.ts';

const MIB = 2 ** 20;
export const BIG_BYTES = 256 * MIB;
export const WRITTEN_BYTES = 128 * MIB;
export const ENTRIES = 5_000;
export const RANDOM_READS = 2_000;
export const RANDOM_BYTES = 4_096;
/** Name of the share on both sides; what lies in it. */
export const SHARE = 'media';
export const BIG = 'big.bin';
export const MANY = 'many';
const ROUNDS = 7;

/** One server as its clients see it. Each resolves with the milliseconds that it took. */
export interface Side {
  sequentialRead(): Promise<number>;
  /** Writes the local file under a new name and takes it away again, so that no upload disturbs what comes after. */
  sequentialWrite(name: string): Promise<number>;
  /** 4 KiB at each of the offsets, one after the other, of a file that is open. */
  randomReads(offsets: readonly number[]): Promise<number>;
  listing(): Promise<number>;
}

export interface Stage {
  readonly daemon: Daemon;
  /** Where the bare mount is. */
  readonly barePoint: string;
  /** A local file of random bytes, to be written, beside the size of the one that is read. */
  readonly source: { readonly path: string; readonly bytes: number; readonly bigBytes: number };
  end(): Promise<void>;
}

export interface StageOptions {
  readonly protocol: string;
  readonly sections: NonNullable<DaemonTraits['sections']>;
  readonly rclone?: string;
}

let remote: Promise<Nas> | undefined;

/** One for all: filling it takes longest. */
async function fullNas(scratch: Scratch): Promise<Nas> {
  const many = Array.from({ length: ENTRIES }, (_, index) => [`${MANY}/entry number ${String(index).padStart(5, '0')}.jpg`, 64] as const);
  remote ??= Nas.create(scratch, { name: 'lan-nas', files: { [BIG]: BIG_BYTES, ...Object.fromEntries(many) } });
  return remote;
}

/** The daemon and a bare mount, both of the same remote by the same rclone, both mounted. */
export async function openStage(scratch: Scratch, { protocol, sections, rclone = 'rclone' }: StageOptions): Promise<Stage> {
  const nas = await fullNas(scratch);
  const source = scratch.path('source.bin');
  await writeFile(source, randomBytes(WRITTEN_BYTES));
  const bare = await (await prepareBareMounts(scratch.path(`lan-bare-${protocol}`), { nas, count: 1, rclone }))();
  const daemon = await Daemon.create(scratch, {
    name: `lan-${protocol}`, rclone, connections: [nas.connection('nas')], shares: [{ name: SHARE, connection: 'nas' }],
    sections: { mount: { write_back: '5s' }, supervisor: { poll_interval: '2s' }, ...sections },
  });
  await daemon.start();
  await daemon.healthy([SHARE]);
  return {
    daemon, source: { path: source, bytes: WRITTEN_BYTES, bigBytes: BIG_BYTES }, barePoint: bare.points[0] ?? '',
    end: async () => {
      await daemon.stop();
      await bare.end();
    },
  };
}

export async function awaitFlag(daemon: Daemon, flag: 'smbd_running' | 'nfs_exported' | 'webdav_running'): Promise<void> {
  await until(flag, async () => (await daemon.get<Record<string, unknown>>('/api/status')).body[flag] === true, { timeoutMs: 20_000 });
}

type Pair = readonly [ours: number, bare: number];
interface Spans { readonly read: Pair[]; readonly write: Pair[]; readonly random: Pair[]; readonly list: Pair[] }

/** Both sides in turn, the first one changing, after a round that warms both and does not count. */
export async function sideBySide(ours: Side, bare: Side): Promise<Spans> {
  const spans: Spans = { read: [], write: [], random: [], list: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const offsets = Array.from({ length: RANDOM_READS }, () => Math.floor(Math.random() * (BIG_BYTES / RANDOM_BYTES)) * RANDOM_BYTES);
    const measure = async (into: Pair[], work: (side: Side) => Promise<number>): Promise<void> => {
      const isOursFirst = round % 2 === 0;
      const first = await work(isOursFirst ? ours : bare);
      const second = await work(isOursFirst ? bare : ours);
      if (round > 0) into.push(isOursFirst ? [first, second] : [second, first]);
    };
    await measure(spans.read, (side) => side.sequentialRead());
    await measure(spans.random, (side) => side.randomReads(offsets));
    await measure(spans.list, (side) => side.listing());
    await measure(spans.write, (side) => side.sequentialWrite(`written ${round}.bin`));
  }
  return spans;
}

export interface Words {
  /** Such as "SMB". */
  readonly protocol: string;
  /** Who stands on the other side. */
  readonly beside: string;
  /** The clients. */
  readonly note: string;
}

export function rows(spans: Spans, words: Words): Figure[] {
  const speed = (bytes: number) => (spanMs: number): string => `${Math.round(bytes / 1e6 / (spanMs / 1000))} MB/s`;
  const row = (what: string, pairs: readonly Pair[], show: (spanMs: number) => string): Figure => ({
    what: `${words.protocol}: ${what}`, ours: show(median(pairs.map(([ours]) => ours))), beside: `${show(median(pairs.map(([, bare]) => bare)))} (${words.beside})`,
    ratio: times(median(pairs.map(([ours, bare]) => bare / ours))), aim: '≥ 0.97×',
    note: `Medians of ${ROUNDS} rounds, each side first in turn; the ratio is the median of the rounds' own, above 1 when ours is faster. ${words.note}`,
  });
  return [
    row(`sequential read of ${BIG_BYTES / MIB} MiB, warm`, spans.read, speed(BIG_BYTES)),
    row(`sequential write of ${WRITTEN_BYTES / MIB} MiB`, spans.write, speed(WRITTEN_BYTES)),
    row('random reads of 4 KiB, warm', spans.random, (spanMs) => `${Math.round(RANDOM_READS / (spanMs / 1000))}/s`),
    row(`listing of ${ENTRIES} entries, warm`, spans.list, (spanMs) => `${Math.round(spanMs)} ms`),
  ];
}
