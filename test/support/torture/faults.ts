/** What befalls the daemon, its processes and its NAS while the writers work. */
import { runClient } from '../exports/client-programs.ts';
import { serversOf } from '../clients/daemon-with-exports.ts';
import type { Daemon } from '../daemon/daemon.ts';
import type { Nas } from '../nas/nas.ts';
import { allProcesses, signalProcess } from '../platform/processes.ts';
import { sleep } from '../platform/wait.ts';

export interface House {
  readonly daemon: Daemon;
  readonly nas: Nas;
  readonly share: string;
  /** The NAS's own folder of the share; none where the NAS keeps no plain files. */
  readonly nasFolder: string | undefined;
  /** Rejects unless the NAS holds all that was acknowledged. Call it while nobody writes. */
  readonly assertOnNas: (when: string) => Promise<unknown>;
}

export interface Fault {
  readonly name: string;
  /** Resolves when it is over, and mended where nobody else mends it. */
  strike(house: House, forMs: number): Promise<void>;
  /** True where it begins when the writers of the round have ended. */
  readonly isAlone?: boolean;
}

const STOP_MS = 300_000;
const START_MS = 60_000;

async function killed(
  house: House,
  signal: NodeJS.Signals,
  forMs: number,
  isMeant: (args: string[]) => boolean,
) {
  const meant = (await allProcesses()).filter(
    ({ args, command }) => command.includes(house.daemon.stateDir) && isMeant([...args]),
  );
  for (const one of meant) signalProcess(one, signal);
  await sleep(forMs);
  return meant;
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'rclone killed',
    strike: async ({ daemon, share }) => {
      process.kill(await daemon.rclonePid(share), 'SIGKILL');
    },
  },
  {
    name: 'rclone killed twice',
    strike: async ({ daemon, share }, forMs) => {
      process.kill(await daemon.rclonePid(share), 'SIGKILL');
      await sleep(forMs / 4);
      process.kill(await daemon.rclonePid(share), 'SIGKILL');
    },
  },
  {
    name: 'rclone stands still',
    strike: async ({ daemon, share }, forMs) => {
      const pid = await daemon.rclonePid(share);
      process.kill(pid, 'SIGSTOP');
      await sleep(forMs);
      // The daemon may have ended it.
      await Promise.resolve()
        .then(() => process.kill(pid, 'SIGCONT'))
        .catch(() => undefined);
    },
  },
  {
    name: 'the daemon killed',
    strike: async ({ daemon }, forMs) => {
      await daemon.end();
      await sleep(forMs / 4);
      await daemon.start(START_MS);
    },
  },
  {
    name: 'an orderly stop',
    isAlone: true,
    strike: async ({ daemon, assertOnNas }) => {
      const { code } = await daemon.stop('SIGTERM', STOP_MS);
      if (code === 0) await assertOnNas('after a stop with exit 0');
      await daemon.start(START_MS);
    },
  },
  {
    name: 'a stop under writers',
    strike: async ({ daemon }) => {
      await daemon.stop('SIGTERM', STOP_MS);
      await daemon.start(START_MS);
    },
  },
  {
    name: 'the NAS away',
    strike: async ({ nas }, forMs) => {
      await nas.stop();
      await sleep(forMs);
      await nas.start();
    },
  },
  {
    name: 'the NAS away, rclone killed',
    strike: async ({ nas, daemon, share }, forMs) => {
      const pid = await daemon.rclonePid(share);
      await nas.stop();
      await sleep(forMs / 2);
      await Promise.resolve()
        .then(() => process.kill(pid, 'SIGKILL'))
        .catch(() => undefined);
      await sleep(forMs / 2);
      await nas.start();
    },
  },
  {
    name: 'the NAS refuses',
    // Where rclone's server is not let replace a file, it shows that one twice from then on, and not the one that was
    // to take its place, which nobody can take away then: it is started anew before it lets others in.
    strike: async ({ nas, nasFolder }, forMs) => {
      if (nasFolder === undefined) return;
      await runClient('chattr', ['-R', '+i', nasFolder]);
      try {
        await sleep(forMs);
        await nas.stop();
      } finally {
        await runClient('chattr', ['-R', '-i', nasFolder]);
      }
      await nas.start();
    },
  },
  {
    name: 'a reconnect',
    strike: async ({ daemon, share }) => {
      await daemon.request('POST', `/api/reconnect/${encodeURIComponent(share)}`);
    },
  },
  {
    name: 'a file server killed',
    strike: async ({ daemon }, forMs) => {
      const servers = [...(await serversOf(daemon)).values()];
      for (const pid of servers[Math.floor(forMs) % servers.length]?.pids ?? []) process.kill(pid, 'SIGKILL');
    },
  },
  {
    name: 'bindfs killed',
    strike: async (house) => {
      await killed(house, 'SIGKILL', 0, (args) => args[0]?.endsWith('bindfs') === true);
    },
  },
  {
    name: 'another limit of bandwidth',
    strike: async ({ daemon }, forMs) => {
      await daemon.writeConfig(daemon.text({ sections: { bandwidth: { up: '2M' } } }));
      await sleep(forMs);
      await daemon.writeConfig(daemon.text());
    },
  },
];
