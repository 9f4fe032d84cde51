/**
 * From the start of a process until shares are mounted: the daemon with 1 and 20 shares beside bare rclone
 * mounts.
 */
import { Daemon } from '../support/daemon/daemon.ts';
import { isMounted } from '../support/platform/mounted-file-systems.ts';
import { Nas } from '../support/nas/nas.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import { prepareBareMounts } from './bare-mount.ts';
import { median, ms, times } from './figures.ts';
import type { Figure } from './figures.ts';

const ROUNDS = 5;
const MANY = 20;

/** Milliseconds until `count` bare `rclone mount`, started at once, are mounted. */
async function bareMounts(room: string, nas: Nas, count: number): Promise<number> {
  const mount = await prepareBareMounts(room, { nas, count });
  const start = performance.now();
  const mounts = await mount();
  const spanMs = performance.now() - start;
  await mounts.end();
  return spanMs;
}

async function daemonMounts(daemon: Daemon, names: readonly string[]): Promise<number> {
  const start = performance.now();
  void daemon.spawn();
  await until(
    "the daemon's mounts",
    async () => (await Promise.all(names.map((name) => isMounted(daemon.mountPoint(name))))).every(Boolean),
    { timeoutMs: 60_000, everyMs: 5 },
  );
  const spanMs = performance.now() - start;
  await daemon.healthy(names, 30_000);
  await daemon.stop();
  return spanMs;
}

export async function benchStart(scratch: Scratch): Promise<Figure[]> {
  const nas = await Nas.create(scratch, { name: 'start-nas', files: { 'x.bin': 1_000 } });
  const names = Array.from({ length: MANY }, (_, index) => `share-${index}`);
  const keeper = (name: string, shares: readonly string[]): Promise<Daemon> =>
    Daemon.create(scratch, {
      name,
      connections: [nas.connection('nas')],
      shares: shares.map((share) => ({ name: share, connection: 'nas' })),
    });
  const [single, many] = [await keeper('start-1', names.slice(0, 1)), await keeper('start-20', names)];
  const spans = { bare: [] as number[], bareMany: [] as number[], one: [] as number[], many: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const room = scratch.path(`start-bare-${round}`);
    spans.bare.push(await bareMounts(`${room}-1`, nas, 1));
    spans.one.push(await daemonMounts(single, names.slice(0, 1)));
    spans.bareMany.push(await bareMounts(`${room}-20`, nas, MANY));
    spans.many.push(await daemonMounts(many, names));
  }
  const [bare, bareMany, one, twenty] = [
    median(spans.bare),
    median(spans.bareMany),
    median(spans.one),
    median(spans.many),
  ];
  return [
    {
      what: 'start until 1 share is mounted',
      ours: ms(one),
      beside: `${ms(bare)} (one bare rclone mount)`,
      ratio: times(one / bare),
      aim: '–',
      note:
        'From the start of the process until the kernel lists the mount. ' +
        'Ours includes the start of Node.js, the reading and checking of the configuration ' +
        'and a listing of the remote path. All rounds but the first are restarts.',
    },
    {
      what: `start until ${MANY} shares are mounted`,
      ours: ms(twenty),
      beside: `${ms(bareMany)} (${MANY} bare rclone mounts at once)`,
      ratio: times(twenty / bareMany),
      aim: `≤ ${ms(bareMany + 2 * bare)}`,
      note:
        `The aim is twice one bare mount's time (${ms(bare)}) plus what the cores cost: ` +
        `${MANY} bare mounts started at once on this machine.`,
    },
  ];
}
