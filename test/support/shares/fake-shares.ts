/**
 * A mounter, a prober, an exporter and their mounts, all in memory, for tests of the supervisor's parts on a
 * manual clock.
 */
import { createManualClock } from 'mountkeeper/testing';
import type {
  Bandwidth,
  ShareLimit,
  ShareTrouble,
  SharesService,
  Exporter,
  Hooks,
  LiveShare,
  Mount,
  MountPlan,
  MountStats,
  Mounter,
  PendingFiles,
  Prober,
  RefreshResult,
  ShareSpec,
} from 'mountkeeper';
import type { HookRunner } from '../../../core/plugins/hooks.ts';
import { ShareRunner } from '../../../core/shares/runner.ts';
import type { RunnerEnvironment } from '../../../core/shares/environment.ts';
import { collectLog } from '../platform/collected-log.ts';

/** Figures of a mount on which nothing waits. */
export const CLEAN: MountStats = {
  cacheBytes: 10,
  dirtyFiles: 0,
  erroredFiles: 0,
  speed: 0,
  transfers: 0,
  errors: 0,
  uploading: false,
};

/** A promise that stays pending, as a call that hangs for good. */
export const never = (): Promise<never> => new Promise(() => undefined);

/** Rejects as soon as the signal aborts, as a call to something that hangs does. */
export function hanging(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** A share over SFTP, with what differs from the usual. */
export function spec(
  name: string,
  change: { remotePath?: string; host?: string; readOnly?: boolean; protocols?: ('smb' | 'nfs')[] } = {},
): ShareSpec {
  return {
    share: {
      name,
      connection: 'nas',
      remote_path: change.remotePath ?? name,
      mount_point: `/mnt/${name}`,
      read_only: change.readOnly ?? false,
      protocols: change.protocols ?? ['smb'],
    },
    connection: { name: 'nas', type: 'sftp', options: { host: change.host ?? 'nas.lan' } },
  };
}

/**
 * Identity: host and remote path. Fingerprint: that and whether it is read-only; protocols touch no mount.
 */
export function planOf({ share, connection }: ShareSpec): MountPlan {
  const identity = `${connection.options.host as string}:${share.remote_path}`;
  return { mountPoint: share.mount_point, identity, fingerprint: `${identity}:${share.read_only}` };
}

/** A mount in memory that records what it is asked for. */
export class FakeMount implements Mount {
  readonly shareName: string;
  readonly plan: MountPlan;
  readonly adopted: boolean;
  readonly rcPort = 5572;
  readonly pid = 1;
  readonly exited: Promise<string>;
  readonly calls: string[] = [];
  readonly limits: Bandwidth[] = [];
  isFrozen?: boolean;
  isUnreadable = false;
  hasUnreadFolders = false;
  figures: MountStats = CLEAN;
  onDisk: PendingFiles | undefined;
  /** Neither the remote control nor the file system answers. */
  isStuck = false;
  isRcStuck = false;
  isRcSilent = false;
  remoteProblem: string | undefined;
  exit!: (reason: string) => void;

  constructor(
    plan: MountPlan,
    shareName: string,
    options: { readonly adopted?: boolean; readonly isFrozen?: boolean } = {},
  ) {
    this.plan = plan;
    this.shareName = shareName;
    this.adopted = options.adopted === true;
    if (options.isFrozen === true) this.isFrozen = true;
    this.exited = new Promise((resolve) => {
      this.exit = resolve;
    });
  }

  /** So many files wait from now on. */
  dirty(dirtyFiles: number): void {
    this.figures = { ...CLEAN, dirtyFiles, uploading: dirtyFiles > 0 };
  }

  get dirtyFiles(): PendingFiles {
    return (
      this.onDisk ?? {
        count: this.figures.dirtyFiles,
        bytes: this.figures.dirtyFiles,
        paths: Array.from({ length: this.figures.dirtyFiles }, (_, index) => `file${index}`),
      }
    );
  }

  async stats(signal: AbortSignal): Promise<MountStats> {
    if (this.isRcStuck) return never();
    return this.isStuck || this.isRcSilent ? hanging(signal) : this.figures;
  }

  async checkRemote(signal: AbortSignal): Promise<void> {
    if (this.isStuck) return hanging(signal);
    if (this.remoteProblem !== undefined) throw new Error(this.remoteProblem);
  }

  async checkAlive(): Promise<void> {
    if (this.isStuck) throw new Error('no answer');
  }

  async setBandwidth(limit: Bandwidth, signal: AbortSignal): Promise<void> {
    if (this.isStuck) return hanging(signal);
    this.limits.push(limit);
  }

  async freeze(): Promise<void> {
    this.calls.push('freeze');
  }
  async flush(): Promise<void> {
    this.calls.push('flush');
  }
  async refreshDirectories(path: string): Promise<RefreshResult> {
    this.calls.push(`refresh ${path}`);
    return { ok: 1, failed: [] };
  }
  async unmount(): Promise<void> {
    this.#end('unmount');
  }
  async kill(): Promise<void> {
    this.#end('kill');
  }
  async pending(): Promise<PendingFiles> {
    return this.dirtyFiles;
  }
  release(): void {
    this.calls.push('release');
  }

  #end(call: string): void {
    this.calls.push(call);
    this.exit('ended by us');
  }
}

/** Gives fake mounts, and keeps them. */
export class FakeMounter implements Mounter {
  readonly mounts: FakeMount[] = [];
  readonly former: FakeMount[] = [];
  /** Dirty files by share that no mount carries; undefined for a cache that cannot be read. */
  readonly onDisk = new Map<string, number | undefined>();
  readonly tried: ShareSpec[] = [];
  /** Of each try, whether nobody had probed the share. */
  readonly unprobed: boolean[] = [];
  problem: string | undefined;
  mountsWithoutRemote: () => Promise<boolean> = () => Promise.resolve(false);
  /** Called for every new mount before it is handed out. */
  prepare: (mount: FakeMount) => void = () => undefined;
  mountCall: (mount: FakeMount, signal: AbortSignal) => Promise<Mount> = async (mount) => mount;

  /** The newest mount; throws when there is none. */
  get last(): FakeMount {
    const mount = this.mounts.at(-1);
    if (!mount) throw new Error('nothing was mounted');
    return mount;
  }

  /** The newest mount of a share; throws when there is none. */
  of(share: string): FakeMount {
    const mount = this.mounts.findLast((candidate) => candidate.shareName === share);
    if (!mount) throw new Error(`${share} was not mounted`);
    return mount;
  }

  plan(wanted: ShareSpec): MountPlan {
    return planOf(wanted);
  }
  async probe(): Promise<void> {}

  async mount(wanted: ShareSpec, signal: AbortSignal, { isUnprobed = false } = {}): Promise<Mount> {
    this.tried.push(wanted);
    this.unprobed.push(isUnprobed);
    if (this.problem !== undefined) throw new Error(this.problem);
    const mount = new FakeMount(planOf(wanted), wanted.share.name);
    this.prepare(mount);
    const given = await this.mountCall(mount, signal);
    this.mounts.push(mount);
    return given;
  }

  async adopt(): Promise<readonly Mount[]> {
    return this.former;
  }

  async pending(share: string): Promise<PendingFiles> {
    const count = this.onDisk.has(share) ? this.onDisk.get(share) : 0;
    if (count === undefined) throw new Error('disk error');
    return { count, bytes: count, paths: [] };
  }

  async cached(): Promise<readonly string[]> {
    return [...this.onDisk.keys()];
  }
}

/** Answers by share: well, with a reason, or never. */
export class FakeProber implements Prober {
  readonly probed: string[] = [];
  readonly problems = new Map<string, string>();
  readonly hangs = new Set<string>();
  /** Whether mounts may do without it. */
  isLeaving = false;

  async leavesToMount(): Promise<boolean> {
    return this.isLeaving;
  }

  async probe({ share }: ShareSpec, signal: AbortSignal): ReturnType<Prober['probe']> {
    this.probed.push(share.name);
    if (this.hangs.has(share.name))
      return hanging(signal).catch(() => ({ ok: false, reason: 'interrupted' }));
    const reason = this.problems.get(share.name);
    return reason === undefined ? { ok: true } : { ok: false, reason };
  }
}

/** Records what it is told. */
export class FakeExporter implements Exporter {
  readonly calls: string[] = [];
  isStuck = false;
  async add(wanted: ShareSpec): Promise<void> {
    this.calls.push(`add ${wanted.share.name} ${wanted.share.protocols.join()}`);
    if (this.isStuck) await never();
  }

  async remove(share: string): Promise<void> {
    this.calls.push(`remove ${share}`);
    if (this.isStuck) await never();
  }
}

export interface FakeHooks extends HookRunner {
  readonly seen: string[];
  reason: string | undefined;
  budget: ((budget: Bandwidth) => Bandwidth) | undefined;
  shareLimits: readonly ShareLimit[];
  shareTroubles: readonly ShareTrouble[];
  delay: () => Promise<void>;
}

/** Hooks that record what was observed and answer as the test says. */
export function fakeHooks(): FakeHooks {
  const hooks: FakeHooks = {
    seen: [],
    reason: undefined,
    budget: undefined,
    shareLimits: [],
    shareTroubles: [],
    delay: async () => undefined,
    veto: async () => hooks.reason,
    observe: async (hook, ...args) => {
      await hooks.delay();
      const [first] = args as [Partial<Hooks['shareHealthChanged']['args'][0]> | string];
      hooks.seen.push(
        typeof first === 'string'
          ? `${hook} ${first}`
          : `${hook} ${first.from ?? ''}→${first.to ?? ''}${first.mounted ? ', mounted' : ''}`,
      );
    },
    resolve: (_hook, value) => hooks.budget?.(value) ?? value,
    collect: (async (hook: string) => {
      await hooks.delay();
      if (hook === 'collectShareTroubles') return hooks.shareTroubles;
      return hook === 'collectShareLimits' ? hooks.shareLimits : [];
    }) as unknown as HookRunner['collect'],
  };
  return hooks;
}

export type Kit = ReturnType<typeof createKit>;

/** Everything around runners, with the clock that drives them. */
export function createKit() {
  const clock = createManualClock();
  const mounter = new FakeMounter();
  const prober = new FakeProber();
  const exporter = new FakeExporter();
  const hooks = fakeHooks();
  const lines = collectLog();
  const present: { mounter: Mounter | undefined; prober: Prober | undefined } = { mounter, prober };
  let changes = 0;
  const around: RunnerEnvironment = {
    clock,
    log: lines.log,
    hooks: () => hooks,
    mounter: () => present.mounter,
    prober: () => present.prober,
    exporters: () => [exporter],
    onChange: () => {
      changes += 1;
    },
    onUnmount: () => undefined,
  };
  return {
    clock,
    mounter,
    prober,
    exporter,
    hooks,
    lines,
    around,
    present,
    get changes() {
      return changes;
    },
    /** A started runner; the test ends it by `release` of its own accord. */
    run(wanted: ShareSpec, adopted?: Mount): ShareRunner {
      const runner = new ShareRunner(wanted, around, adopted);
      runner.start();
      return runner;
    },
    /** Lets time pass while figures are collected every 2 s, as the supervisor does. */
    async pass(ms: number, ...runners: readonly ShareRunner[]): Promise<void> {
      for (let left = ms; left > 0; left -= 2_000) {
        await clock.advance(Math.min(left, 2_000));
        for (const runner of runners) void runner.pulse();
        await clock.advance(0);
      }
    },
  };
}

/** The daemon's service over such a list. */
export function sharesOf(list: () => readonly LiveShare[]): SharesService {
  return { list, get: (name) => list().find(({ spec }) => spec.share.name === name) };
}
