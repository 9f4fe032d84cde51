import { link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock, Logger } from 'mountkeeper';
import { dataFile, readMeta, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import { covers } from '../cache/ranges.ts';
import { awayFile, isStuck, KEPT_ASIDE, keepFailedWriteBack, namesOf } from './failed-write-back.ts';
import { quarantinedFiles } from './quarantine.ts';
import type { DeletedFile, DirtyOpenFile, OpenFiles } from '../stats/open-files.ts';
import { recoveredPath } from './recovered.ts';

const READ_LOG_EVERY_MS = 5_000;
const LOG_LINES = 4_000;
const LOOK_CLOSELY_EVERY_MS = 25;
/**
 * Looking takes no more than this part of the time, unless that would be too seldom: a file that is opened
 * again unseen is lost to all but a person.
 */
const SHARE_OF_TIME = 0.1;
const LOOK_CLOSELY_AT_LEAST_EVERY_MS = 100;
/** Other open files are waited for so long before rclone is started anew. */
const WAIT_FOR_OTHERS_MS = 30_000;

export interface WriteBackRescueOptions {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
  /** Last lines that rclone wrote. */
  readonly tail: (lines: number) => Promise<readonly string[]>;
  readonly openFiles: () => Promise<OpenFiles>;
  readonly deletedFiles: () => readonly DeletedFile[];
  /** Leaves holes as they are. */
  readonly copy: (from: string, to: string) => Promise<unknown>;
  /** Makes rclone write down what the file's content holds by now. */
  readonly saveRecord: (path: string, modifiedMs: number) => Promise<unknown>;
  /** Ends rclone, so that the share is mounted anew. */
  readonly restart: () => void;
}

interface RescuedFile {
  readonly inode: bigint;
  /** Of the content when its record was saved last, or is being saved. */
  savedMs: number;
  isSaving: boolean;
}

/**
 * Watches over one kind of file that rclone itself loses: changed in place, in the cache only in part, and
 * closed while the remote is away. Fetching the missing part then fails, the writer has long been told that
 * all is well, and the file stays open inside rclone, in no queue. The next program that opens it makes
 * rclone delete its content, and is told by an error. So a second name keeps the content with its record as
 * long as it may be needed, and once the remote answers rclone is started anew: what it still has it
 * completes and sends up, and what it deleted is put back into its cache before. Of what was written rclone's
 * record on disk lists no more than the first piece; setting a file's time makes it list all. Of a file that
 * is opened again sooner than that, written zeros cannot be told from holes.
 */
export class WriteBackRescue {
  readonly #options: WriteBackRescueOptions;
  readonly #rescued = new Map<string, RescuedFile>();
  readonly #stuck = new Set<string>();
  readonly #quarantined = new Set<string>();
  /** Inodes of content that is taken care of, in this outage. */
  readonly #seen = new Set<bigint>();
  #isAway = false;
  #openCount = 0;
  #answersSinceMs: number | undefined;
  #logReadAtMs = -Infinity;
  #tending: Promise<void> | undefined;
  readonly #found: Promise<void>;

  constructor(options: WriteBackRescueOptions) {
    this.#options = options;
    this.#found = this.#findQuarantined().catch(() => undefined);
  }

  /** Files that rclone knows nothing of until it is started anew. */
  get heldFiles(): number {
    return this.#quarantined.size;
  }

  /** Called with every look at the open files. */
  tend(files: OpenFiles): Promise<void> {
    this.#tending ??= this.#tendNow(files).finally(() => (this.#tending = undefined));
    return this.#tending;
  }

  /** Looks often enough to be there before a file is opened again. Goes on as long as the NAS is away. */
  async watchClosely(isAway: () => boolean, signal: AbortSignal): Promise<void> {
    const { cacheDir, clock, openFiles } = this.#options;
    this.#isAway = true;
    this.#answersSinceMs = undefined;
    const away = awayFile(cacheDir);
    await mkdir(dirname(away), { recursive: true, mode: 0o700 })
      .then(() => writeFile(away, '', { mode: 0o600 }))
      .catch(() => undefined);
    while (isAway() && !signal.aborted) {
      const begunMs = clock.monotonic();
      await openFiles()
        .then((files) => this.tend(files))
        .then(() => this.#salvage())
        .catch(() => undefined);
      const pauseMs = Math.min(
        LOOK_CLOSELY_AT_LEAST_EVERY_MS,
        Math.max(LOOK_CLOSELY_EVERY_MS, (clock.monotonic() - begunMs) / SHARE_OF_TIME),
      );
      await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
    if (signal.aborted) return;
    this.#seen.clear();
    this.#isAway = false;
    await rm(away, { force: true }).catch(() => undefined);
  }

  /** Called whenever the remote has just answered. */
  remoteAnswered(): void {
    const { clock, log, restart } = this.#options;
    if (this.#stuck.size + this.#quarantined.size === 0) return;
    this.#answersSinceMs ??= clock.monotonic();
    if (this.#openCount > this.#stuck.size && clock.monotonic() - this.#answersSinceMs < WAIT_FOR_OTHERS_MS)
      return;
    log.warn(
      {
        paths: [...this.#stuck, ...this.#quarantined].slice(0, 5),
        files: this.#stuck.size + this.#quarantined.size,
      },
      'files that rclone cannot finish are taken up again by a new start',
    );
    this.#stuck.clear();
    this.#quarantined.clear();
    restart();
  }

  async #findQuarantined(): Promise<void> {
    for await (const { path } of quarantinedFiles(this.#options.cacheDir)) this.#quarantined.add(path);
  }

  async #tendNow({ open, dirty }: OpenFiles): Promise<void> {
    const { clock } = this.#options;
    await this.#found;
    this.#openCount = open;
    // First: one that was deleted may be there anew.
    for (const [path, guarded] of this.#rescued) await this.#check(path, guarded);
    for (const file of dirty) if (!this.#rescued.has(file.path)) await this.#begin(file);
    if (this.#rescued.size === 0) return;
    if (clock.monotonic() - this.#logReadAtMs >= READ_LOG_EVERY_MS) {
      this.#logReadAtMs = clock.monotonic();
      const lines = await this.#options.tail(LOG_LINES);
      for (const path of this.#rescued.keys()) if (isStuck(lines, path)) this.#stuck.add(path);
    }
  }

  /** What was opened again before it was seen. Without a record it can only be kept for a person. */
  async #salvage(): Promise<void> {
    const { cacheDir, clock, copy, deletedFiles, log } = this.#options;
    for (const { path, inode, file } of deletedFiles()) {
      if (this.#seen.has(inode)) continue;
      this.#seen.add(inode);
      const kept = await recoveredPath(path, { cacheDir, clock });
      void copy(file, kept).then(
        () => log.error({ path, kept }, KEPT_ASIDE),
        (error: unknown) => log.error({ path, err: error }, 'changed file not kept'),
      );
    }
  }

  async #begin({ path, meta }: DirtyOpenFile): Promise<void> {
    const { cacheDir, trees } = this.#options;
    if (meta === 'torn' || meta.Fingerprint === '') return;
    const content = await dataFile(join(trees.data, path));
    if (!content || covers(meta.Rs, content.bytes)) return;
    const kept = namesOf(cacheDir, path);
    // Tried again at the next look when the disk has no room for it.
    await mkdir(dirname(kept.content), { recursive: true, mode: 0o700 }).catch(() => undefined);
    await rm(kept.content, { force: true });
    await link(join(trees.data, path), kept.content).catch(() => undefined);
    await writeMeta(kept.meta, meta, { inHurry: true }).catch(() => undefined);
    const found = await stat(kept.content, { bigint: true }).catch(() => undefined);
    if (!found) return;
    this.#seen.add(found.ino);
    this.#rescued.set(path, { inode: found.ino, savedMs: 0, isSaving: false });
  }

  async #check(path: string, guarded: RescuedFile): Promise<void> {
    const { tail, trees } = this.#options;
    const found = await stat(join(trees.data, path), { bigint: true }).catch(() => undefined);
    if (found?.ino === guarded.inode) return this.#attend(path, guarded, Number(found.mtimeMs));
    // While the NAS is away nothing that was changed can have gone up or been taken away by a user.
    const isFailedWriteBack = this.#isAway || this.#stuck.has(path) || isStuck(await tail(LOG_LINES), path);
    if (isFailedWriteBack && (await keepFailedWriteBack(path, this.#options))) this.#quarantined.add(path);
    await this.#drop(path);
  }

  async #attend(path: string, guarded: RescuedFile, modifiedMs: number): Promise<void> {
    const { saveRecord, trees } = this.#options;
    const meta = await readMeta(join(trees.meta, path));
    if (meta !== undefined && meta !== 'torn' && !meta.Dirty) return this.#drop(path);
    if (guarded.savedMs === modifiedMs || guarded.isSaving || (!this.#isAway && !this.#stuck.has(path)))
      return;
    guarded.savedMs = modifiedMs;
    guarded.isSaving = true;
    void saveRecord(path, modifiedMs)
      .then(() => this.#copyRecord(path, guarded))
      .catch(() => undefined)
      .finally(() => (guarded.isSaving = false));
  }

  async #copyRecord(path: string, guarded: RescuedFile): Promise<void> {
    const { cacheDir, trees } = this.#options;
    const meta = await readMeta(join(trees.meta, path));
    if (meta === undefined || meta === 'torn' || !meta.Dirty || this.#rescued.get(path) !== guarded) return;
    // 1.60 saves what was written, and the time of the first change with it.
    const ModTime = new Date(guarded.savedMs).toISOString();
    await writeMeta(namesOf(cacheDir, path).meta, { ...meta, ModTime }, { inHurry: true });
  }

  async #drop(path: string): Promise<void> {
    this.#rescued.delete(path);
    this.#stuck.delete(path);
    const { content, meta } = namesOf(this.#options.cacheDir, path);
    await Promise.all([rm(content, { force: true }), rm(meta, { force: true })]);
  }
}
