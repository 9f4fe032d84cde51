import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { durationMs } from 'mountkeeper';
import type { Clock, LiveShare, Logger, Mount } from 'mountkeeper';
import type { WarmupConfig, WarmupRule } from './config.ts';
import type { Helper, StartHelper } from './worker-process.ts';
import type { Ending, Order, Report } from './orders.ts';
import { keyOf, Task } from './task.ts';
import type { Target } from './task.ts';

/** Shares warmed up at the same time; the line is one. */
const SHARES_AT_ONCE = 2;
/** After an interruption. */
const PAUSE_MS = 2_000;
/** What was asked for and is through is remembered for whoever asks, the last ones. */
const MOST_ASKED = 50;

export interface StationOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly config: () => Readonly<WarmupConfig>;
  /** Lists of what is to be fetched lie here. */
  readonly folder: string;
  readonly start: StartHelper;
  /** What former daemons left. */
  readonly former: ReadonlyMap<string, Task>;
  readonly save: (tasks: readonly Task[]) => void;
}

interface Run {
  readonly task: Task;
  readonly mount: Mount;
  readonly helper: Helper;
}

/** Decides what runs when: one task per share at a time, only where the share is healthy and its remote answers. */
export class Station {
  readonly #options: StationOptions;
  readonly #runs = new Map<string, Run>();
  /** Mounts for which the rules were called for. */
  readonly #mounts = new Map<string, Mount>();
  readonly #notBefore = new Map<string, number>();
  #rules = new Map<string, Task>();
  #asked = new Map<string, Task>();
  #listFiles = 0;
  #isClosed = false;

  constructor(options: StationOptions) {
    this.#options = options;
    for (const task of options.former.values()) if (task.isWanted && !task.target.isDryRun) this.#asked.set(task.key, task);
    this.configure();
  }

  /** In the order of the configuration. */
  get rules(): readonly Task[] {
    return [...this.#rules.values()];
  }

  /** Everything that is known of a share: its rules, then what was asked for. */
  of(share: string): readonly Task[] {
    return [...this.#rules.values(), ...this.#asked.values()].filter(({ target }) => target.share === share);
  }

  /** Takes over the rules of the configuration: new ones are called for, those taken out stop at once. */
  configure(): void {
    const { config, former } = this.#options;
    const previous = this.#rules;
    this.#rules = new Map(config().rules.map(targetOf).map((target) => {
      const key = keyOf(target);
      const known = previous.get(key) ?? this.#asked.get(key) ?? former.get(key);
      const task = known ?? new Task(target);
      if (!previous.has(key) && config().auto) task.want();
      this.#asked.delete(key);
      return [key, task] as const;
    }));
    for (const [key, task] of previous) if (!this.#rules.has(key)) this.#stop(task);
    for (const { helper } of this.#runs.values()) helper.setConcurrency(config().concurrency);
    this.look();
    this.#save();
  }

  /** Calls for rules: all, or those of one share. Gives how many there are. */
  wantRules(share?: string): number {
    const meant = this.rules.filter(({ target }) => share === undefined || target.share === share);
    for (const task of meant) task.want();
    this.#save();
    this.look();
    return meant.length;
  }

  /** What is no rule is forgotten some time after it is through. */
  ask(target: Target): void {
    const key = keyOf(target);
    const task = this.#rules.get(key) ?? this.#asked.get(key) ?? new Task(target);
    if (!this.#rules.has(key)) {
      this.#asked.delete(key);
      this.#asked.set(key, task);
      const over = [...this.#asked.values()].filter((one) => !one.isRunning && !one.isWanted).slice(0, Math.max(0, this.#asked.size - MOST_ASKED));
      for (const one of over) this.#asked.delete(one.key);
    }
    task.want();
    this.#save();
    this.look();
  }

  /** Ends what is under way and what waits; gives how many that were. */
  cancel(share: string): number {
    const meant = this.of(share).filter((task) => task.isWanted || task.isRunning);
    for (const task of meant) this.#stop(task);
    this.#save();
    return meant.length;
  }

  /** Stops what can no longer go on and starts what can. Waits for nothing. */
  look(): void {
    if (this.#isClosed) return;
    const live = new Map(this.#options.shares().map((share) => [share.spec.share.name, share] as const));
    for (const [share, run] of this.#runs) if (readyMount(live.get(share)) !== run.mount) run.helper.stop();
    for (const share of this.#mounts.keys()) if (live.get(share)?.mount === undefined) this.#mounts.delete(share);
    for (const [share, one] of live) this.#lookAt(share, readyMount(one));
  }

  /** Ends all helpers; what they were at goes on in the next daemon. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const runs = [...this.#runs.values()];
    for (const { helper } of runs) helper.stop();
    await Promise.all(runs.map(({ helper }) => helper.ended));
  }

  #lookAt(share: string, mount: Mount | undefined): void {
    if (mount === undefined) return;
    if (this.#mounts.get(share) !== mount) this.#welcome(share, mount);
    if (this.#runs.has(share) || this.#runs.size >= SHARES_AT_ONCE || this.#options.clock.monotonic() < (this.#notBefore.get(share) ?? 0)) return;
    const next = this.of(share).find((task) => task.isWanted);
    if (next !== undefined) this.#begin(next, mount);
  }

  #welcome(share: string, mount: Mount): void {
    this.#mounts.set(share, mount);
    const meant = this.#options.config().auto ? this.rules.filter(({ target }) => target.share === share) : [];
    for (const task of meant) task.want();
  }

  #begin(task: Task, mount: Mount): void {
    const { clock, log, config, folder, start } = this.#options;
    const access = mount.cacheAccess?.();
    if (access === undefined) return this.#end(task, { outcome: 'failed', reason: 'this mount does not let its cache be looked into' });
    const { share, path, newerThan, isDryRun } = task.target;
    const listFile = join(folder, `${this.#listFiles += 1}.list`);
    const order: Order = {
      ...access, path, isDryRun, listFile, mountPoint: mount.plan.mountPoint, concurrency: config().concurrency,
      changedSinceMs: newerThan === null ? null : clock.now() - durationMs(newerThan),
    };
    task.begin();
    log.info({ share, path: path || '/', dryRun: isDryRun }, 'warmup begins');
    const helper = start(order, (report) => this.#hear(task, report));
    const run = { task, mount, helper };
    this.#runs.set(share, run);
    this.#save();
    void helper.ended.then((ending) => {
      helper.stop();
      void rm(listFile, { force: true }).catch(() => undefined);
      if (this.#runs.get(share) === run) this.#runs.delete(share);
      this.#end(task, ending);
    });
  }

  #hear(task: Task, report: Report): void {
    const { share } = task.target;
    if (this.#runs.get(share)?.task !== task) return;
    if (report.kind === 'counts') {
      const before = task.state;
      task.heard(report);
      if (task.state !== before) this.#save();
    }
    if (report.kind === 'problem') this.#options.log.warn({ share, path: report.path || '/', reason: report.reason }, 'not warmed up');
  }

  #end(task: Task, ending: Ending): void {
    const { clock, log } = this.#options;
    const { share, path } = task.target;
    const isDropped = this.of(share).every((one) => one !== task) || (!task.isWanted && ending.outcome === 'stopped');
    const { total, skipped, cached, errors, cachedBytes } = task.counts;
    const fields = { share, path: path || '/', total, skipped, cached, errors, cachedBytes };
    if (isDropped) return log.info(fields, 'warmup stopped');
    task.ended(ending);
    this.#notBefore.set(share, clock.monotonic() + (task.isWanted ? PAUSE_MS : 0));
    if (task.state === 'failed') log.error({ ...fields, reason: ending.reason }, 'warmup failed');
    else if (task.isWanted) log.warn({ ...fields, reason: ending.reason }, 'warmup interrupted; it goes on when the share is healthy');
    else log.info(fields, 'warmup complete');
    this.#save();
    this.look();
  }

  #stop(task: Task): void {
    task.cancel();
    const run = this.#runs.get(task.target.share);
    if (run?.task === task) run.helper.stop();
    this.#asked.delete(task.key);
  }

  #save(): void {
    this.#options.save([...this.#rules.values(), ...this.#asked.values()]);
  }
}

function targetOf(rule: WarmupRule): Target {
  return { share: rule.share, path: rule.path, newerThan: rule.newer_than ?? null, isDryRun: false };
}

function readyMount(share: LiveShare | undefined): Mount | undefined {
  return share?.health === 'healthy' && share.remoteAnswers !== false ? share.mount : undefined;
}
