import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { durationMs } from 'mountkeeper';
import type { Clock, LiveShare, Logger, Mount } from 'mountkeeper';
import type { WarmupConfig, WarmupRule } from '../config.ts';
import type { Helper, StartHelper } from './worker-process.ts';
import { otherMountsOf, readyMount } from './shared-connections.ts';
import type { Ending, Order, Report, Terms } from '../job-description.ts';
import { keyOf, Task } from './task.ts';
import type { Target } from './task.ts';

/**
 * Connections over which shares are warmed up at the same time; on each connection one share at a time,
 * because its shares share one line.
 */
const LINES_AT_ONCE = 2;
/** Pause after an interruption. */
const PAUSE_MS = 2_000;
/** How long the mount may take to look at folders anew; the warmup goes on without. */
const REFRESH_MS = 600_000;
/** Finished requests that are remembered for people who ask. */
const MOST_ASKED = 50;

export interface WarmupSchedulerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shares: () => readonly LiveShare[];
  readonly config: () => Readonly<WarmupConfig>;
  /** Folder for the lists of what is to be fetched. */
  readonly folder: string;
  readonly start: StartHelper;
  /** Saved tasks of former daemons. */
  readonly former: ReadonlyMap<string, Task>;
  readonly save: (tasks: readonly Task[]) => void;
}

interface Run {
  readonly connection: string;
  readonly task: Task;
  readonly mount: Mount;
  readonly helper: Helper;
  /** The last terms sent to the helper. */
  terms: string;
}

/**
 * Decides what runs when: one task per share at a time, only where the share is healthy and its remote
 * answers.
 */
export class WarmupScheduler {
  readonly #options: WarmupSchedulerOptions;
  readonly #runs = new Map<string, Run>();
  /** Mounts for which the rules have already been requested. */
  readonly #mounts = new Map<string, Mount>();
  readonly #notBefore = new Map<string, number>();
  #rules = new Map<string, Task>();
  #written: readonly string[] = [];
  #former: ReadonlyMap<string, Task>;
  #asked = new Map<string, Task>();
  #listFiles = 0;
  #isClosed = false;

  constructor(options: WarmupSchedulerOptions) {
    this.#options = options;
    this.#former = options.former;
    for (const task of options.former.values())
      if (task.isWanted && !task.isRule && !task.target.isDryRun) this.#asked.set(task.key, task);
    this.configure();
  }

  /** In the order of the configuration, each once. */
  get rules(): readonly Task[] {
    return [...this.#rules.values()];
  }

  /** One task per rule as written; two equal rules share one task. */
  get written(): readonly Task[] {
    return this.#written.map((key) => this.#rules.get(key)).filter((task) => task !== undefined);
  }

  /** All tasks of a share: its rules, then what was requested. */
  of(share: string): readonly Task[] {
    return [...this.#rules.values(), ...this.#asked.values()].filter(({ target }) => target.share === share);
  }

  /** Applies the rules of the configuration: new ones are requested, removed ones stop at once. */
  configure(): void {
    const { config } = this.#options;
    // Saved tasks apply only to the rules at the start; a rule that is removed and added again counts as
    // new.
    const former = this.#former;
    this.#former = new Map();
    const previous = this.#rules;
    this.#written = config().rules.map((rule) => keyOf(targetOf(rule)));
    this.#rules = new Map(
      config()
        .rules.map(targetOf)
        .map((target) => {
          const key = keyOf(target);
          const known = previous.get(key) ?? this.#asked.get(key) ?? former.get(key);
          const task = known ?? new Task(target);
          task.isRule = true;
          if (!previous.has(key) && config().auto) task.want();
          this.#asked.delete(key);
          return [key, task] as const;
        }),
    );
    for (const [key, task] of previous) if (!this.#rules.has(key)) this.#stop(task);
    this.look();
    this.#save();
  }

  /** Requests rules to run: all, or those of one share. Returns how many there are. */
  wantRules(share?: string): number {
    const meant = this.rules.filter(({ target }) => share === undefined || target.share === share);
    for (const task of meant) task.want();
    this.#save();
    this.look();
    return meant.length;
  }

  /** Tasks that are not rules are forgotten some time after they are finished. */
  ask(target: Target): void {
    const key = keyOf(target);
    const task = this.#rules.get(key) ?? this.#asked.get(key) ?? new Task(target);
    if (!this.#rules.has(key)) {
      this.#asked.delete(key);
      this.#asked.set(key, task);
      const over = [...this.#asked.values()]
        .filter((one) => !one.isRunning && !one.isWanted)
        .slice(0, Math.max(0, this.#asked.size - MOST_ASKED));
      for (const one of over) this.#asked.delete(one.key);
    }
    task.want();
    this.#save();
    this.look();
  }

  /** Ends what is running and what waits; returns how many there were. */
  cancel(share: string): number {
    const meant = this.of(share).filter((task) => task.isWanted || task.isRunning);
    for (const task of meant) this.#stop(task);
    this.#save();
    return meant.length;
  }

  /** Stops tasks that can no longer run and starts those that can. Waits for nothing. */
  look(): void {
    if (this.#isClosed) return;
    // Most daemons have nothing to warm up, and are asked twice a second.
    if (this.#rules.size + this.#asked.size + this.#runs.size === 0) return this.#mounts.clear();
    const all = this.#options.shares();
    const live = new Map(all.map((share) => [share.spec.share.name, share] as const));
    for (const [share, run] of this.#runs) {
      if (readyMount(live.get(share)) !== run.mount) run.helper.stop();
      else this.#tell(run, this.#termsOf(share, all));
    }
    for (const share of this.#mounts.keys())
      if (live.get(share)?.mount === undefined) this.#mounts.delete(share);
    for (const one of all) this.#lookAt(one, all);
  }

  /** Ends all helpers; the next daemon continues their tasks. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const runs = [...this.#runs.values()];
    for (const { helper } of runs) helper.stop();
    await Promise.all(runs.map(({ helper }) => helper.ended));
  }

  #lookAt(one: LiveShare, all: readonly LiveShare[]): void {
    const [mount, share] = [readyMount(one), one.spec.share.name];
    if (mount === undefined) return;
    if (this.#mounts.get(share) !== mount) this.#onReturn(share, mount);
    const runs = [...this.#runs.values()];
    if (
      runs.length >= LINES_AT_ONCE ||
      runs.some(({ connection }) => connection === one.spec.connection.name)
    )
      return;
    if (this.#runs.has(share) || this.#options.clock.monotonic() < (this.#notBefore.get(share) ?? 0)) return;
    const next = this.of(share).find((task) => task.isWanted);
    if (next !== undefined)
      this.#begin(next, { mount, connection: one.spec.connection.name, terms: this.#termsOf(share, all) });
  }

  #termsOf(share: string, all: readonly LiveShare[]): Terms {
    return { concurrency: this.#options.config().concurrency, otherMounts: otherMountsOf(share, all) };
  }

  #tell(run: Run, terms: Terms): void {
    const text = JSON.stringify(terms);
    if (text === run.terms) return;
    run.terms = text;
    run.helper.tell(terms);
  }

  #onReturn(share: string, mount: Mount): void {
    this.#mounts.set(share, mount);
    const meant = this.#options.config().auto
      ? this.rules.filter(({ target }) => target.share === share)
      : [];
    for (const task of meant) task.want();
  }

  #begin(
    task: Task,
    {
      mount,
      connection,
      terms,
    }: { readonly mount: Mount; readonly connection: string; readonly terms: Terms },
  ): void {
    const { clock, log, folder, start } = this.#options;
    if (mount.cacheAccess === undefined)
      return this.#end(task, {
        outcome: 'failed',
        reason: 'this mount does not let its cache be looked into',
      });
    const access = mount.cacheAccess();
    // Nothing has read from its remote yet: the task stays due.
    if (access === undefined) return;
    const { share, path, newerThan, isDryRun } = task.target;
    const listFile = join(folder, `${(this.#listFiles += 1)}.list`);
    const order: Order = {
      ...access,
      ...terms,
      path,
      isDryRun,
      listFile,
      mountPoint: mount.plan.mountPoint,
      changedSinceMs: newerThan === null ? null : clock.now() - durationMs(newerThan),
    };
    task.begin();
    log.info({ share, path: path || '/', dryRun: isDryRun }, 'warmup begins');
    const helper = start(order, (report) => this.#hear(task, report));
    const run: Run = { connection, task, mount, helper, terms: JSON.stringify(terms) };
    this.#runs.set(share, run);
    this.#save();
    void helper.ended.then((ending) => {
      helper.stop();
      // All lists go at the next start.
      void rm(listFile, { force: true }).catch(() => undefined);
      if (this.#runs.get(share) === run) this.#runs.delete(share);
      this.#end(task, ending);
    });
  }

  #hear(task: Task, report: Report): void {
    const { share } = task.target;
    const run = this.#runs.get(share);
    if (run?.task !== task) return;
    if (report.kind === 'refresh') void this.#refresh(run, report);
    if (report.kind === 'counts') {
      const before = task.state;
      task.heard(report);
      if (task.state !== before) this.#save();
    }
    if (report.kind === 'problem')
      this.#options.log.warn({ share, path: report.path || '/', reason: report.reason }, 'not warmed up');
  }

  async #refresh(
    { mount, helper }: Run,
    { id, folder, isDeep }: Report & { kind: 'refresh' },
  ): Promise<void> {
    const signal = this.#options.clock.deadline(REFRESH_MS);
    // What it could not read, reading shows.
    await mount.refreshDirectories(folder, { recursive: isDeep, signal }).catch(() => undefined);
    helper.tell({ refreshed: id });
  }

  #end(task: Task, ending: Ending): void {
    const { clock, log } = this.#options;
    const { share, path } = task.target;
    const isDropped =
      this.of(share).every((one) => one !== task) || (!task.isWanted && ending.outcome === 'stopped');
    const { total, skipped, cached, errors, cachedBytes } = task.counts;
    const fields = { share, path: path || '/', total, skipped, cached, errors, cachedBytes };
    if (isDropped) return log.info(fields, 'warmup stopped');
    task.ended(ending);
    this.#notBefore.set(share, clock.monotonic() + (task.isWanted ? PAUSE_MS : 0));
    if (task.state === 'failed') log.error({ ...fields, reason: ending.reason }, 'warmup failed');
    else if (task.isWanted)
      log.warn(
        { ...fields, reason: ending.reason },
        'warmup interrupted; it goes on when the share is healthy',
      );
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
