/** A share whose NAS goes away, and hands that work in it. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Mount } from 'mountkeeper';
import type { MountConfig } from '../../../plugins/mount/config.ts';
import { Nas } from '../nas/nas.ts';
import { Relay } from '../nas/tcp-relay.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { sleep, until, within } from '../platform/wait.ts';
import { createWorkbench } from './workbench.ts';
import type { Workbench } from './workbench.ts';
import type { Outcome, Task } from './user-program.ts';

/** What the NAS holds, in bytes. */
export const FILES = {
  'd/cached.bin': 200_000,
  'd/whole.bin': 200_000,
  'd/part.bin': 20_000_000,
  'd/again.bin': 20_000_000,
  'd/never1.bin': 5_000_000,
  'd/never2.bin': 5_000,
  'd/never3.bin': 5_000,
  'd/begun.bin': 5_000_000,
};

/** The test's side of a child that works below the mount. */
export class UserProgram {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (outcome: Outcome) => void>();
  #lastId = 0;

  constructor(scratch: Scratch) {
    this.#child = fork(fileURLToPath(new URL('./user-program.js', import.meta.url)), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      detached: true,
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', ({ id, outcome }: { id: number; outcome: Outcome }) =>
      this.#waiting.get(id)?.(outcome),
    );
    scratch.defer(() => {
      this.#child.kill('SIGKILL');
      return Promise.resolve();
    });
  }

  /** One piece of work. Rejects after two minutes. */
  do(task: Task): Promise<Outcome> {
    const id = (this.#lastId += 1);
    const answer = new Promise<Outcome>((resolve) => this.#waiting.set(id, resolve));
    this.#child.send({ id, task });
    return within(`${task.op} ${task.path}`, 120_000, answer);
  }
}

export interface OfflineShare {
  readonly nas: Nas;
  readonly relay: Relay;
  readonly bench: Workbench;
  readonly hands: UserProgram;
  readonly path: (name: string) => string;
  mount: Mount;
}

/** Looks after the mount as the daemon does, without which nobody notices an outage. */
export function lookAfter(room: OfflineShare): () => Promise<void> {
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      await room.mount.stats(AbortSignal.timeout(2_000)).catch(() => undefined);
      await room.mount.checkRemote(AbortSignal.timeout(2_500)).catch(() => undefined);
      await sleep(500);
    }
  })();
  return async () => {
    isOver = true;
    await done;
  };
}

export interface OfflineShareTraits {
  readonly rclone: string;
  readonly protocol: 'sftp' | 'webdav';
  readonly mount?: Partial<MountConfig>;
}

/** Mounts one share over a relay that can be cut; no daemon runs. */
export async function createOfflineShare(
  scratch: Scratch,
  { rclone, protocol, mount: settings = {} }: OfflineShareTraits,
): Promise<OfflineShare> {
  const nas = await Nas.create(scratch, { protocol, files: FILES });
  const relay = await Relay.start(scratch, { targetPort: nas.port });
  const bench = createWorkbench(scratch, {
    rclone,
    nas,
    mount: { chunk_size: '1M', read_ahead: '0', buffer_size: '0', ...settings },
  });
  const mount = await bench.mount(bench.spec('photos', {}, relay.port));
  const room: OfflineShare = {
    nas,
    relay,
    bench,
    mount,
    hands: new UserProgram(scratch),
    path: (name) => `${mount.plan.mountPoint}/d/${name}`,
  };
  await room.hands.do({ op: 'list', path: room.path('') });
  for (const name of ['cached.bin', 'whole.bin']) await room.hands.do({ op: 'read', path: room.path(name) });
  for (const name of ['part.bin', 'again.bin']) await room.hands.do({ op: 'head', path: room.path(name) });
  return room;
}

/** Resolves once it is known that the NAS is away. `meanwhile` begins when it has just gone. */
export async function goAway(
  room: OfflineShare,
  how: 'cut' | 'blackHole',
  meanwhile?: () => void,
): Promise<void> {
  const known = async (): Promise<number> => (await room.bench.log()).split('the NAS is away').length - 1;
  const before = await known();
  await room.hands.do({ op: 'list', path: room.path('') });
  await room.relay[how]();
  meanwhile?.();
  await until('it is known that the NAS is away', async () => (await known()) > before, {
    timeoutMs: 15_000,
    everyMs: 100,
  });
}
