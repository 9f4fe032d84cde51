/**
 * What the servers on the LAN have in common when they are measured: the remote, the two sides, the rounds,
 * the table's rows.
 */
import { writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { Daemon } from '../support/daemon/daemon.ts';
import type { DaemonTraits } from '../support/daemon/daemon.ts';
import { Nas } from '../support/nas/nas.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import { prepareBareMounts } from './bare-mount.ts';
import { median, times } from './figures.ts';
import type { Figure } from './figures.ts';

const MIB = 2 ** 20;
export const BIG_BYTES = 128 * MIB;
export const WRITTEN_BYTES = 64 * MIB;
export const ENTRIES = 5_000;
export const RANDOM_READS = 500;
export const RANDOM_BYTES = 4_096;
/** Name of the share on both sides; what lies in it. */
export const SHARE = 'media';
export const BIG = 'big.bin';
export const MANY = 'many';
const ROUNDS = 5;

/** One server as its clients see it. Each resolves with the milliseconds that it took. */
export interface Side {
  sequentialRead(): Promise<number>;
  /**
   * Writes the local file under a new name and takes it away again, so that no upload disturbs what comes
   * after.
   */
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
}

function fullNas(scratch: Scratch, protocol: string): Promise<Nas> {
  const many = Array.from(
    { length: ENTRIES },
    (_, index) => [`${MANY}/entry number ${String(index).padStart(5, '0')}.jpg`, 64] as const,
  );
  return Nas.create(scratch, {
    name: `lan-nas-${protocol}`,
    files: { [BIG]: BIG_BYTES, ...Object.fromEntries(many) },
  });
}

/** The daemon and a bare mount, both of the same remote by the same rclone, both mounted. */
export async function openStage(scratch: Scratch, { protocol, sections }: StageOptions): Promise<Stage> {
  const nas = await fullNas(scratch, protocol);
  const source = scratch.path('source.bin');
  await writeFile(source, randomBytes(WRITTEN_BYTES));
  const bare = await (await prepareBareMounts(scratch.path(`lan-bare-${protocol}`), { nas, count: 1 }))();
  const daemon = await Daemon.create(scratch, {
    name: `lan-${protocol}`,
    connections: [nas.connection('nas')],
    shares: [{ name: SHARE, connection: 'nas' }],
    sections: { mount: { write_back: '5s' }, supervisor: { poll_interval: '2s' }, ...sections },
  });
  await daemon.start();
  await daemon.healthy([SHARE]);
  return {
    daemon,
    source: { path: source, bytes: WRITTEN_BYTES, bigBytes: BIG_BYTES },
    barePoint: bare.points[0] ?? '',
    end: async () => {
      await daemon.stop();
      await bare.end();
      await nas.stop();
    },
  };
}

export async function awaitFlag(
  daemon: Daemon,
  flag: 'smbd_running' | 'nfs_exported' | 'webdav_running',
): Promise<void> {
  await until(
    flag,
    async () => (await daemon.get<Record<string, unknown>>('/api/status')).body[flag] === true,
    { timeoutMs: 20_000 },
  );
}

/** Milliseconds of a listing by a client that prints what it sees. Rejects when not all was seen. */
export async function listed(listing: Promise<string>): Promise<number> {
  const start = performance.now();
  const output = await listing;
  const spanMs = performance.now() - start;
  // WebDAV names each twice, once as a path and once for people.
  const seen = new Set(
    [...output.matchAll(/entry(?: |%20)number(?: |%20)(\d+)/g)].map(([, number]) => number),
  ).size;
  if (seen !== ENTRIES) throw new Error(`${seen} of ${ENTRIES} entries were listed: ${output.slice(0, 200)}`);
  return spanMs;
}

type Pair = readonly [ours: number, bare: number];
export type What = 'read' | 'write' | 'random' | 'list';
export type Spans = Partial<Record<What, Pair[]>>;

/** Both sides in turn, the first one changing, after a round that warms both and does not count. */
export async function sideBySide(
  ours: Side,
  bare: Side,
  whats: readonly What[] = ['read', 'random', 'list', 'write'],
): Promise<Spans> {
  const spans: Spans = {};
  for (let round = 0; round <= ROUNDS; round += 1) {
    const offsets = Array.from(
      { length: RANDOM_READS },
      () => Math.floor(Math.random() * (BIG_BYTES / RANDOM_BYTES)) * RANDOM_BYTES,
    );
    const work: Record<What, (side: Side) => Promise<number>> = {
      read: (side) => side.sequentialRead(),
      write: (side) => side.sequentialWrite(`written ${round}.bin`),
      random: (side) => side.randomReads(offsets),
      list: (side) => side.listing(),
    };
    const isOursFirst = round % 2 === 0;
    for (const what of whats) {
      const first = await work[what](isOursFirst ? ours : bare);
      const second = await work[what](isOursFirst ? bare : ours);
      if (round > 0) (spans[what] ??= []).push(isOursFirst ? [first, second] : [second, first]);
    }
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
  /** What is to be known of one of the rows. */
  readonly notes?: Partial<Record<What, string>>;
  readonly aim?: string;
}

export function rows(spans: Spans, words: Words): Figure[] {
  const speed =
    (bytes: number) =>
    (spanMs: number): string =>
      `${Math.round(bytes / 1e6 / (spanMs / 1000))} MB/s`;
  const row = (
    which: What,
    what: string,
    { pairs, show }: { pairs: readonly Pair[]; show: (spanMs: number) => string },
  ): Figure => ({
    what: `${words.protocol}: ${what}`,
    ours: show(median(pairs.map(([ours]) => ours))),
    beside: `${show(median(pairs.map(([, bare]) => bare)))} (${words.beside})`,
    ratio: times(median(pairs.map(([ours, bare]) => bare / ours))),
    aim: words.aim ?? '≥ 0.97×',
    note:
      `Medians of ${ROUNDS} rounds, each side first in turn; ` +
      "the ratio is the median of the rounds' own, above 1 when ours is faster. " +
      `${[words.note, words.notes?.[which]].filter((one) => one !== undefined).join(' ')}`,
  });
  const all: Record<What, (pairs: readonly Pair[]) => Figure> = {
    read: (pairs) =>
      row('read', `sequential read of ${BIG_BYTES / MIB} MiB, warm`, { pairs, show: speed(BIG_BYTES) }),
    write: (pairs) =>
      row('write', `sequential write of ${WRITTEN_BYTES / MIB} MiB`, { pairs, show: speed(WRITTEN_BYTES) }),
    random: (pairs) =>
      row('random', 'random reads of 4 KiB, warm', {
        pairs,
        show: (spanMs) => `${Math.round(RANDOM_READS / (spanMs / 1000))}/s`,
      }),
    list: (pairs) =>
      row('list', `listing of ${ENTRIES} entries, warm`, {
        pairs,
        show: (spanMs) => `${Math.round(spanMs)} ms`,
      }),
  };
  return (['read', 'write', 'random', 'list'] as const).flatMap((what) =>
    spans[what] ? [all[what](spans[what])] : [],
  );
}
