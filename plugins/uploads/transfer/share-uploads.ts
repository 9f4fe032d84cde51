/**
 * One share's uploader: scans the upper folder, plans, runs the steps, removes what has been uploaded. It
 * keeps no important state in memory: if it is interrupted at any point, the next one reaches the same
 * result.
 */
import { hostname } from 'node:os';
import type { Conflict, QueueEntry, RemoteFailure, RemoteFiles, UploadFigures } from 'mountkeeper';
import type { Item } from '../compare/plan-types.ts';
import { isFileIn, Records } from '../compare/records.ts';
import type { Scan } from '../compare/scan.ts';
import { resolveConflict } from '../conflicts/resolve.ts';
import type { Keep } from '../conflicts/resolve.ts';
import { KeptTimes } from '../proof/kept-times.ts';
import { Prover } from '../proof/prover.ts';
import type { ProofOptions } from '../proof/proof-jobs.ts';
import type { Receipt } from '../proof/receipt.ts';
import { DEFAULT_PROOF } from '../proof/same-content.ts';
import type { Verification } from '../proof/verify.ts';
import { CleanFiles } from './leaving/clean-files.ts';
import { clearLinks } from './content.ts';
import { figuresOf, localBytesOf, movingNow } from './figures.ts';
import { GuardedRemote } from './guard/guarded-remote.ts';
import { discardFile } from './leaving/discard.ts';
import type { Discarded, DiscardRequest } from './leaving/discard.ts';
import { LeftFiles } from './leaving/left-files.ts';
import { Leaving } from './leaving/leaving.ts';
import { settleLive } from './leaving/settle-live.ts';
import type { ManagedUploads, ShareUploaderOptions } from './managed.ts';
import { MoveLock } from './move-lock.ts';
import { LookLoop } from './look-loop.ts';
import { freshMs, restMs } from './pace.ts';
import type { Looked } from './pace.ts';
import { perform } from './perform.ts';
import { Planner } from './planner.ts';
import { Queue } from './queue.ts';
import type { Running } from './queue.ts';
import { RecentProofs } from './recent-proofs.ts';
import { Changed } from './step-tools.ts';
import type { StepTools } from './step-tools.ts';

/** How long a `flush` lasts. */
const HURRY_MS = 30_000;
const MOVE_END_MS = 20;
/** How long what is to leave the upper folder waits for uploads to end. */
const TAKE_OUT_PATIENCE_MS = 60_000;

export class ShareUploader implements ManagedUploads {
  readonly #options: ShareUploaderOptions;
  readonly #planner: Planner;
  /** For whatever changes it. */
  readonly #remote: RemoteFiles;
  readonly #queue = new Queue();
  readonly #proofs = new RecentProofs();
  readonly #end = new AbortController();
  readonly #steps = new Set<Promise<void>>();
  #records: Records | undefined;
  #opening: Promise<Records> | undefined;
  #figures: UploadFigures | undefined;
  #looking: Promise<UploadFigures> | undefined;
  #nextLook: Promise<UploadFigures> | undefined;
  readonly #leaving: Leaving;
  readonly #clean: CleanFiles;
  readonly #left: LeftFiles;
  readonly #moveLock: MoveLock;
  readonly #prover: Prover;
  readonly #times: KeptTimes;
  #hurriedUntil = 0;
  #uploadedBytes = 0;
  /** What the remote has is being taken out; no other begins while a step runs. */
  #takingOut: Promise<void> = Promise.resolve();
  /** What is being discarded is away for a moment, and may come back. */
  #discarding = 0;
  #isLookDue = false;
  /** Of the last look. */
  #hasSeenAll = false;
  /** A move has ended since the last look began. */
  #isMoveUnseen = false;
  /** Moves that have ended, and how many of them the plan that is adopted has seen. */
  readonly #moved = { count: 0, seen: 0 };
  #lastListing: string | undefined;
  #looked: Looked = { entries: 0, tookMs: 0 };
  readonly #loop: LookLoop;
  /** Since when something may leave the upper folder, in monotonic milliseconds. */
  #leavingSinceMs: number | undefined;

  constructor(options: ShareUploaderOptions) {
    this.#options = options;
    this.#planner = new Planner(options);
    this.#remote = new GuardedRemote(options.remote, () => this.#planner.upper.look());
    this.#leaving = new Leaving({
      clock: options.clock,
      tools: () => this.#tools(),
      learnFirst: () => this.#learnFirst(),
      settled: (keys) => this.#planner.settled(keys),
    });
    this.#clean = new CleanFiles({
      upper: options.layer.upper,
      remote: options.remote,
      clock: options.clock,
      rules: options.clean,
      log: options.log,
    });
    this.#left = new LeftFiles({
      folder: options.layer.discarded,
      clock: options.clock,
      endRest: () => options.layer.takeOut([]),
      isUnrestored: () => this.#isUnrestored,
    });
    this.#prover = new Prover({
      clock: options.clock,
      end: this.#end.signal,
      tools: async () => this.#tools(await this.#open()),
      look: () => this.#lookForProof(),
      waiting: () => this.#queue.waiting(this.#now()),
      unrestored: () => options.layer.unrestored?.() ?? new Set(),
    });
    this.#times = new KeptTimes({
      shareName: options.layer.shareName,
      remote: options.remote,
      log: options.log,
    });
    this.#moveLock = new MoveLock({
      clock: options.clock,
      hasten: () => this.#lookSoon(),
      isMoving: () => this.#isMoving,
      isPending: () => this.#leaving.isRenewalPending,
    });
    this.#loop = new LookLoop({
      clock: options.clock,
      end: this.#end.signal,
      look: () => this.look(this.#end.signal),
      restMs: () => this.#restMs(),
      onFailure: (error) =>
        options.log.warn({ share: options.layer.shareName, err: error }, 'upper folder not looked at'),
    });
    if (options.isSelfDriven !== false) {
      this.#loop.begin();
      void this.#planner.watchSpace(this.#end.signal);
    }
  }

  get figures(): UploadFigures | undefined {
    return this.#figures;
  }

  queue(): readonly QueueEntry[] {
    return this.#queue.entries(this.#now());
  }

  conflicts(): readonly Conflict[] {
    return this.#records?.conflicts ?? [];
  }

  get pausedUntil(): number | undefined {
    return this.#queue.pausedUntil(this.#now());
  }

  pause(until: number): void {
    // Of a clock that was set back before.
    this.#now();
    this.#queue.pause(until);
    this.#lookSoon();
  }

  /** The time of day, of which the queue must not be told otherwise. */
  #now(): number {
    const { clock } = this.#options;
    const now = clock.now();
    this.#queue.clockSays(now, clock.monotonic());
    return now;
  }

  async sendNow(path: string): Promise<void> {
    this.#queue.prefer(path);
    this.#lookSoon();
    // What was written a moment ago waits, too.
    if (!this.#queue.hasAt(path)) await this.look(this.#end.signal);
    if (!this.#queue.hasAt(path)) throw new Error(`${path} does not wait to be uploaded.`);
  }

  async resolve(conflict: Pick<Conflict, 'path' | 'copy'>, keep: Keep): Promise<void> {
    const records = await this.#open();
    const { items } = this.#queue;
    const both = [conflict.path, conflict.copy];
    const isWaiting = items.some(({ path }) => both.includes(path));
    const goOn = isWaiting ? [] : [...new Set(both)].map((path) => this.#queue.keepBack(path));
    if (isWaiting || goOn.includes(undefined)) {
      for (const one of goOn) one?.();
      throw new Error(`${conflict.path} waits to go up: try again when it is on the remote.`);
    }
    await this.#asStep(
      resolveConflict(conflict, keep, this.#tools(records)).finally(() => {
        for (const one of goOn) one?.();
        this.#lookSoon();
      }),
    );
  }

  /** A stop waits for its end. */
  #asStep<T>(work: Promise<T>): Promise<T> {
    this.#spawn(
      work.then(
        () => undefined,
        () => undefined,
      ),
    );
    return work;
  }

  async discard(asked: DiscardRequest): Promise<Discarded> {
    const { path } = asked;
    const records = await this.#open();
    const goOn = this.#queue.keepBack(path);
    if (goOn === undefined)
      throw new Error(
        `${path} is being uploaded just now; nothing was discarded. Wait for the end, or pause first.`,
      );
    this.#discarding += 1;
    return this.#asStep(
      this.#discard(asked, records).finally(() => {
        this.#discarding -= 1;
        goOn();
        this.#lookSoon();
      }),
    );
  }

  async #discard(asked: DiscardRequest, records: Records): Promise<Discarded> {
    // It may be about the same path, and what it notes of that would be wrong in the midst of this.
    await this.#takingOut;
    this.#isLookDue = true;
    await this.look(this.#end.signal);
    if (!this.#moveLock.isSettled)
      throw new Error('Folders are being renamed just now; nothing was discarded. Try again in a moment.');
    const done = await discardFile(asked, this.#queue.items, this.#tools(records));
    this.#queue.discarded(asked.path);
    this.#left.added();
    return done;
  }

  verify(path: string, options: ProofOptions): Promise<Verification> {
    return this.#prover.verify(path, options);
  }

  receipt(path: string, options: ProofOptions): Promise<Receipt> {
    return this.#prover.receipt(path, options);
  }

  /** For a proof. Others may wait for the same look: it does not end with this one. */
  async #lookForProof(): Promise<boolean> {
    await this.#takingOut;
    // What was written a moment ago counts, too.
    this.#isLookDue = true;
    await this.look(this.#end.signal);
    return this.#hasSeenAll;
  }

  #lookSoon(): void {
    this.#isLookDue = true;
    this.#loop.wake();
  }

  async holdMoves(signal: AbortSignal): Promise<() => void> {
    return this.#moveLock.hold(AbortSignal.any([signal, this.#end.signal]));
  }

  async settleMoves(signal: AbortSignal): Promise<void> {
    const release = this.#moveLock.holdAnyway();
    try {
      // Steps that were running ended with the former connection.
      while ([...this.#queue.running.values()].some(({ item }) => item.action === 'move'))
        await this.#options.clock.sleep(MOVE_END_MS, signal);
      await settleLive(await this.#planner.scan(signal), { ...this.#tools(await this.#open()), signal });
    } finally {
      release();
      this.#lookSoon();
    }
  }

  refreshed(folder: string, isDeep: boolean): void {
    this.#clean.refreshed(folder, isDeep);
    this.#loop.wake();
  }

  flush(): void {
    this.#hurriedUntil = this.#options.clock.monotonic() + HURRY_MS;
    this.#queue.hurry();
    this.#lookSoon();
  }

  /** A scan that began before the call may not include the latest changes, so another one follows it. */
  look(signal: AbortSignal, { isNew = false }: { readonly isNew?: boolean } = {}): Promise<UploadFigures> {
    this.#isLookDue ||= isNew;
    if (this.#isFresh()) return Promise.resolve(this.#figuresNow(this.#figures!));
    if (this.#looking === undefined) {
      this.#looking = this.#look(signal).finally(() => (this.#looking = undefined));
      return this.#looking;
    }
    const after = this.#looking.then(
      () => undefined,
      () => undefined,
    );
    this.#nextLook ??= after.then(() => {
      this.#nextLook = undefined;
      return this.look(signal);
    });
    return this.#nextLook;
  }

  /**
   * Scanning very many files is expensive: frequent callers get the last result. An "everything is
   * uploaded" is never taken from an old one.
   */
  #isFresh(): boolean {
    if (this.#isLookDue || this.#figures === undefined || this.#figures.dirtyFiles === 0) return false;
    return this.#options.clock.monotonic() - this.#figures.lookedAtMs < freshMs(this.#looked);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    this.#loop.wake();
    await Promise.allSettled([this.#loop.ended, ...this.#steps, this.#looking, this.#opening]);
    await this.#records?.close();
  }

  /** Resolves when no step is running and none can start now. */
  async settled(): Promise<void> {
    while (this.#steps.size > 0) await Promise.race(this.#steps);
  }

  /** True when another scan would find something to do at once. */
  get isLookDue(): boolean {
    return this.#isLookDue;
  }

  #restMs(): number {
    // At most half of the time.
    if (this.#isMoveUnseen) return Math.min(this.#looked.tookMs, freshMs(this.#looked));
    return restMs(this.#looked, { isDue: this.#isLookDue, isIdle: this.#figures?.dirtyFiles === 0 });
  }

  async #look(caller: AbortSignal): Promise<UploadFigures> {
    const { clock } = this.#options;
    const signal = AbortSignal.any([caller, this.#end.signal]);
    const lookedAtMs = clock.monotonic();
    this.#isLookDue = false;
    this.#isMoveUnseen = false;
    const { count: moves } = this.#moved;
    const records = await this.#open();
    const scan = await this.#planner.scan(signal);
    this.#noteChange(scan);
    await this.#proofs.review(this.#options.remote, records, clock.monotonic());
    const { plan, isMoreToLearn } = await this.#planner.plan(scan, records, {
      isHurried: lookedAtMs < this.#hurriedUntil,
      ...(this.#queue.hasUrgent && { isUrgent: (path: string) => this.#queue.isUrgent(path) }),
      signal,
    });
    const isAsked = plan.items.size === 0 || this.#prover.isAsked;
    const isTorn = isAsked && !(await this.#planner.hasSeenAll(scan, signal));
    this.#isLookDue ||= isMoreToLearn || isTorn;
    this.#queue.adopt(plan, this.#now());
    this.#moveLock.looked(scan, records);
    const localBytes = localBytesOf(scan);
    this.#clean.adopt(plan.clean, localBytes);
    this.#moved.seen = moves;
    this.#leaving.adopt(scan, { ...plan, done: [...plan.done, ...this.#clean.leaving()] }, lookedAtMs);
    this.#hasSeenAll = isAsked && !isTorn && this.#discarding === 0;
    this.#looked = { entries: scan.entries.size, tookMs: clock.monotonic() - lookedAtMs };
    this.#figures = figuresOf(this.#queue, {
      lookedAtMs,
      now: this.#now(),
      uploadedBytes: this.#uploadedBytes,
      isTorn: isTorn || this.#discarding > 0 || this.#isUnrestored,
      localBytes,
    });
    this.#start();
    return this.#figuresNow(this.#figures);
  }

  #noteChange({ listing }: Scan): void {
    if (this.#lastListing === listing) return;
    this.#lastListing = listing;
    this.#options.onChange?.();
  }

  #figuresNow(figures: UploadFigures): UploadFigures {
    return { ...figures, ...movingNow(this.#queue, this.#uploadedBytes) };
  }

  get #isUnrestored(): boolean {
    return (this.#options.layer.unrestored?.().size ?? 0) > 0;
  }

  /** Starts steps that may run; when none can, removes what has been uploaded. */
  #start(): void {
    const { transfers } = this.#options;
    if (this.#end.signal.aborted || this.#records === undefined || this.#planner.upper.isOther) return;
    this.#queue.holdMoves(this.#moveLock.isHeld || this.#leaving.readsAnew);
    for (const item of this.#queue.next(this.#now(), Math.max(1, transfers()))) this.#run(item);
    this.#startLeaving();
  }

  /** Renews marks, and removes what has been uploaded. */
  #startLeaving(): void {
    if (this.#areMovesSeen) {
      if (this.#leaving.isRenewalDue) this.#spawn(this.#renew());
      if (this.#mayTakeOut && this.#moveLock.isSettled && this.#leaving.isDue) this.#startTakingOut();
    }
    if (this.#left.isDue) this.#spawn(this.#left.sweep());
    if (this.#clean.isDue) this.#spawn(this.#leave(this.#clean.check(this.#end.signal)));
  }

  async #renew(): Promise<void> {
    try {
      await this.#leaving.renew();
    } finally {
      this.#isLookDue = true;
    }
  }

  #startTakingOut(): void {
    const work = this.#leave(this.#leaving.takeOut());
    // How it ended is told by the step.
    this.#takingOut = work.catch(() => undefined).then(() => this.#left.added());
    this.#leavingSinceMs = undefined;
    this.#spawn(work);
  }

  get #isMoving(): boolean {
    return [...this.#queue.running.values()].some(({ item }) => item.action === 'move');
  }

  /**
   * Whether the last look has seen all that was moved. A folder whose listing is read anew lacks the former name of
   * what has moved in it since: users would find that empty, or it would answer ESTALE.
   */
  get #areMovesSeen(): boolean {
    return !this.#isMoving && this.#moved.seen === this.#moved.count;
  }

  /**
   * When no step runs; beside uploads, which may go on for hours, once it has waited for a while: what lies here would
   * fill the disk, and what others have changed would not show.
   */
  get #mayTakeOut(): boolean {
    const now = this.#options.clock.monotonic();
    const { running } = this.#queue;
    if (!this.#leaving.isDue) this.#leavingSinceMs = undefined;
    else this.#leavingSinceMs ??= now;
    const isOverdue = now - (this.#leavingSinceMs ?? now) >= TAKE_OUT_PATIENCE_MS;
    // What could not be renewed at once, as where it was just renamed again, is still shown by its former name.
    if (this.#leaving.isRenewalPending && !isOverdue) return false;
    if (this.#steps.size === 0) return true;
    const areUploads = [...running.values()].every(({ item }) => item.action === 'upload');
    return isOverdue && areUploads && this.#steps.size === running.size;
  }

  #run(item: Item): void {
    const run: Running = { item, sentBytes: 0 };
    this.#queue.running.set(item.id, run);
    this.#spawn(this.#step(item, run).finally(() => this.#queue.running.delete(item.id)));
  }

  /** Whatever changes the upper folder is followed by another scan. */
  async #leave(work: Promise<boolean>): Promise<void> {
    this.#isLookDue = (await work) || this.#isLookDue;
  }

  #spawn(work: Promise<void>): void {
    const step: Promise<void> = work
      .catch((error: unknown) =>
        this.#options.log.error({ share: this.#options.layer.shareName, err: error }, 'uploader failed'),
      )
      .finally(() => {
        this.#steps.delete(step);
        this.#start();
        if (this.#steps.size === 0) this.#loop.wake();
      });
    this.#steps.add(step);
  }

  async #step(item: Item, run: Running): Promise<void> {
    const { log, layer } = this.#options;
    try {
      await perform(item, this.#tools(), (bytes) => {
        this.#uploadedBytes += Math.max(0, bytes - run.sentBytes);
        run.sentBytes = bytes;
        this.#queue.progressed(bytes);
      });
      this.#queue.succeeded(item);
      if (this.#queue.isEmpty) this.#isLookDue = true;
    } catch (error) {
      if (this.#end.signal.aborted) return;
      if (error instanceof Changed) {
        this.#isLookDue = true;
        this.#queue.postponed(item);
        return;
      }
      const failure = error as RemoteFailure;
      log.debug({ share: layer.shareName, path: item.path, err: failure }, 'not on the remote yet');
      this.#queue.failed(item, failure, this.#now());
    } finally {
      if (item.action === 'move') this.#afterMove(item);
    }
  }

  /**
   * Also where the move has failed. What exists only at the new place is out of sight until a look has found that
   * its mark is to be renewed, so that does not wait for other steps.
   */
  #afterMove(item: Item): void {
    this.#queue.moved(item);
    this.#moveLock.moved();
    this.#moved.count += 1;
    this.#isLookDue = true;
    // Once: others that end meanwhile are seen by the same look.
    if (!this.#isMoveUnseen) this.#loop.wake();
    this.#isMoveUnseen = true;
  }

  #tools(records = this.#records!): StepTools {
    const { layer, clock, onConflict, proof } = this.#options;
    return {
      layer,
      remote: this.#remote,
      clock,
      onConflict,
      proof: proof?.() ?? DEFAULT_PROOF,
      times: this.#times,
      records,
      proved: (place, before) => this.#proofs.add(place, before, records, clock.monotonic()),
      host: hostname().split('.')[0] ?? 'here',
      signal: this.#end.signal,
      touched: (folder) => this.#leaving.touched(folder),
      leaving: (places) => this.#planner.departures.begin(places),
      onDisk: () => this.#planner.written.now(this.#end.signal),
    };
  }

  async #learnFirst(): Promise<void> {
    const { signal } = this.#end;
    await this.#planner.plan(await this.#planner.scan(signal), await this.#open(), {
      isHurried: false,
      signal,
    });
  }

  async #open(): Promise<Records> {
    const { layer, remote } = this.#options;
    this.#opening ??= this.#planner.upper
      .look()
      .then(async ({ ino, birthtimeNs }) => {
        await clearLinks(layer.records);
        const records = await Records.open(layer.records, `${ino} ${birthtimeNs}`, (place) =>
          isFileIn(layer.upper, place),
        );
        if (records.precisionMs > 0) remote.notePrecision?.(records.precisionMs);
        return records;
      })
      .catch((error: unknown) => {
        this.#opening = undefined;
        throw error;
      });
    this.#records = await this.#opening;
    return this.#records;
  }
}
