/** Starts and ends bindfs, which mirrors a folder: it resolves each name by its path, at each call. */
import { rootWith } from 'mountkeeper';
import type { Clock, ManagedProcess, MountTable, ProcessSpec, Processes } from 'mountkeeper';

const READY_MS = 10_000;
const LOOK_MS = 10;
const STOP_GRACE_MS = 1_500;

/**
 * Only names and their inode numbers are cached: a cached size would truncate a file that is replaced. With a
 * single thread, each slow read would block everybody. No extended attributes: a remote's
 * `trusted.overlay.…` must not be believed.
 */
const OPTIONS = [
  '-f',
  '--multithreaded',
  '--xattr-none',
  '-o',
  'noforget,attr_timeout=0,entry_timeout=0,negative_timeout=0,nosuid,nodev',
];

export interface BindfsTools {
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly clock: Clock;
}

export interface BindfsSpec extends Pick<ProcessSpec, 'key' | 'fingerprint' | 'lock' | 'notes'> {
  /** Added to those that every bindfs gets here. */
  readonly options: readonly string[];
  readonly source: string;
  /** Where it is mounted; nothing is mounted there yet. */
  readonly place: string;
  /** Beside mounting: in lower case and without `cap_`. */
  readonly capabilities?: readonly string[];
}

export interface StartingBindfs {
  readonly process: ManagedProcess;
  /** Rejects with a plain sentence, and has ended the process then. */
  readonly mounted: Promise<void>;
}

/** Resolves when it is mounted. Rejects with a plain sentence. */
export async function startBindfs(spec: BindfsSpec, tools: BindfsTools): Promise<ManagedProcess> {
  const { process, mounted } = await beginBindfs(spec, tools);
  await mounted;
  return process;
}

/** Resolves when its process runs, with the lock that it is to have. */
export async function beginBindfs(
  { options, source, place, capabilities = [], ...spec }: BindfsSpec,
  tools: BindfsTools,
): Promise<StartingBindfs> {
  const { processes } = tools;
  const bindfs = await processes.start({
    ...spec,
    command: 'bindfs',
    args: [...OPTIONS, ...options, source, place],
    rights: await rootWith({ processes, capabilities: ['sys_admin', ...capabilities] }),
  });
  const mounted = whenMounted(bindfs, place, tools);
  // Who waits for it hears of a failure.
  mounted.catch(() => undefined);
  return { process: bindfs, mounted };
}

async function whenMounted(
  bindfs: ManagedProcess,
  place: string,
  { clock, mountTable }: BindfsTools,
): Promise<void> {
  const deadline = clock.deadline(READY_MS);
  while ((await mountTable.find(place)) === undefined) {
    if (deadline.aborted || !bindfs.isAlive()) {
      await bindfs.stop({ graceMs: 0 });
      throw new Error(
        `bindfs does not pass on what lies below the share: ${(await bindfs.tail(1))[0] ?? 'no reason given'}`,
      );
    }
    await clock.sleep(LOOK_MS);
  }
}

/** Ends bindfs, and with it all calls that still hang in it. */
export async function endBindfs(bindfs: ManagedProcess): Promise<void> {
  await bindfs.stop({ graceMs: STOP_GRACE_MS });
}
