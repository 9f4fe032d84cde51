import type { BigIntStats } from 'node:fs';
import { link, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { logIgnored, pause, undefinedWhenMissing } from 'mountkeeper';
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
 * Fraction of time spent on checking, unless checks would become too rare: a file that is opened again
 * before it is noticed can only be kept for a person.
 */
const SHARE_OF_TIME = 0.1;
const LOOK_CLOSELY_AT_LEAST_EVERY_MS = 100;
/** How long to wait for other open files before rclone is restarted. */
const WAIT_FOR_OTHERS_MS = 30_000;

export interface WriteBackRescueOptions {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
  /** Last lines of rclone's output. */
  readonly tail: (lines: number) => Promise<readonly string[]>;
  readonly openFiles: () => Promise<OpenFiles>;
  readonly deletedFiles: () => readonly DeletedFile[];
  /** Keeps holes. */
  readonly copy: (from: string, to: string) => Promise<unknown>;
  /** Makes rclone save metadata with everything that the file's content holds by now. */
  readonly saveRecord: (path: string, modifiedMs: number) => Promise<unknown>;
  /** Ends rclone, so that the share is mounted again. */
  readonly restart: () => void;
}

interface RescuedFile {
  readonly inode: bigint;
  /** Modification time of the content when its metadata was last saved, or is being saved. */
  savedMs: number;
  isSaving: boolean;
}

/**
 * Protects one kind of file that rclone loses: changed in place, only partly cached, and closed while the
 * remote is away. Fetching the missing parts then fails after the writer was told that all is well, and the
 * file stays open inside rclone, in no queue. The next program that opens it makes rclone delete its
 * content, and gets an error. So a second hard link keeps the content and its metadata for as long as they
 * may be needed, and once the remote answers, rclone is restarted: it completes and uploads what it still
 * has, and what it deleted is put back into its cache before. rclone's metadata on disk lists only the
 * first piece that was written; setting a file's time makes rclone list all of them. For a file that is
 * opened again before that, written zeros cannot be told from holes.
 */
export class WriteBackRescue {
  readonly #options: WriteBackRescueOptions;
  readonly #rescued = new Map<string, RescuedFile>();
  readonly #stuck = new Set<string>();
  readonly #quarantined = new Set<string>();
  /** Inodes of content that is already handled in this outage. */
  readonly #seen = new Set<bigint>();
  #isAway = false;
  #openCount = 0;
  #trouble: string | undefined;
  #answersSinceMs: number | undefined;
  #logReadAtMs = -Infinity;
  #tending: Promise<void> | undefined;
  readonly #found: Promise<void>;

  constructor(options: WriteBackRescueOptions) {
    this.#options = options;
    this.#found = this.#findQuarantined().catch((error: unknown) =>
      options.log.warn(
        { err: error },
        'held versions of changed files cannot be read; they wait for the next mount',
      ),
    );
  }

  /** Files that rclone knows nothing of until it is started anew, and those about to be found so. */
  async countUnfinished(): Promise<number> {
    await this.#found;
    const gone = [...this.#rescued].map(async ([path, { inode }]) =>
      (await this.#inodeOf(path)) === inode || this.#quarantined.has(path) ? 0 : 1,
    );
    const counts = await Promise.all(gone);
    return this.#quarantined.size + counts.reduce<number>((sum, one) => sum + one, 0);
  }

  /** Why a changed file could not be protected in the last round; undefined when all could. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** To be called about once a second with the files that are open. */
  tend(files: OpenFiles): Promise<void> {
    this.#tending ??= this.#tendNow(files).finally(() => (this.#tending = undefined));
    return this.#tending;
  }

  /** Checks often enough to notice a file before it is opened again, for as long as the NAS is away. */
  async watchClosely(isAway: () => boolean, signal: AbortSignal): Promise<void> {
    const { cacheDir, clock, log, openFiles } = this.#options;
    this.#isAway = true;
    this.#answersSinceMs = undefined;
    const away = awayFile(cacheDir);
    // The mark only spares a person a look: without it content is kept aside after a kill.
    await mkdir(dirname(away), { recursive: true, mode: 0o700 })
      .then(() => writeFile(away, '', { mode: 0o600 }))
      .catch(logIgnored(log, 'mark that the NAS is away'));
    while (isAway() && !signal.aborted) {
      const begunMs = clock.monotonic();
      await openFiles()
        .then((files) => this.tend(files))
        .catch(logIgnored(log, 'look after files that rclone has open'));
      await this.#salvage().catch(logIgnored(log, 'keep deleted files'));
      const pauseMs = Math.min(
        LOOK_CLOSELY_AT_LEAST_EVERY_MS,
        Math.max(LOOK_CLOSELY_EVERY_MS, (clock.monotonic() - begunMs) / SHARE_OF_TIME),
      );
      await pause(clock, pauseMs, signal);
    }
    if (signal.aborted) return;
    this.#seen.clear();
    this.#isAway = false;
    // A mark that stays makes the next start hold what it need not.
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
    const failures: string[] = [];
    const attempt = (path: string, work: Promise<void>): Promise<void> =>
      work.catch((error: unknown) => void failures.push(`${path}: ${(error as Error).message}`));
    // First: one that was deleted may be there anew.
    for (const [path, rescued] of this.#rescued) await attempt(path, this.#check(path, rescued));
    for (const file of dirty) if (!this.#rescued.has(file.path)) await attempt(file.path, this.#begin(file));
    this.#setTrouble(failures);
    if (this.#rescued.size === 0) return;
    if (clock.monotonic() - this.#logReadAtMs >= READ_LOG_EVERY_MS) {
      this.#logReadAtMs = clock.monotonic();
      const lines = await this.#options.tail(LOG_LINES);
      for (const path of this.#rescued.keys()) if (isStuck(lines, path)) this.#stuck.add(path);
    }
  }

  /** One file that cannot be protected keeps no other from it, and people hear of it. */
  #setTrouble([first, ...others]: readonly string[]): void {
    const more = others.length > 0 ? `, and ${others.length} more` : '';
    const trouble = first && `changed files in the cache cannot be protected (${first}${more})`;
    if (trouble !== undefined && trouble !== this.#trouble) this.#options.log.warn(trouble);
    this.#trouble = trouble;
  }

  /** Content that was deleted before it was noticed. Without metadata it can only be kept for a person. */
  async #salvage(): Promise<void> {
    const { cacheDir, clock, copy, deletedFiles, log } = this.#options;
    for (const { path, inode, file } of deletedFiles()) {
      if (this.#seen.has(inode)) continue;
      const kept = await recoveredPath(path, { cacheDir, clock });
      // Not before there is a place for it: else it would never be tried again.
      this.#seen.add(inode);
      void copy(file, kept).then(
        () => log.error({ path, kept }, KEPT_ASIDE),
        (error: unknown) => log.error({ path, err: error }, 'changed file not kept'),
      );
    }
  }

  async #begin({ path, meta }: DirtyOpenFile): Promise<void> {
    const { cacheDir, log, trees } = this.#options;
    if (meta === 'torn' || meta.Fingerprint === '') return;
    const content = await dataFile(join(trees.data, path));
    if (!content || covers(meta.Rs, content.bytes)) return;
    const kept = namesOf(cacheDir, path);
    // Rejects where the disk is full or knows no links: people hear of it, and the next look tries again.
    await mkdir(dirname(kept.content), { recursive: true, mode: 0o700 });
    await rm(kept.content, { force: true });
    // Gone meanwhile: then nothing is found below.
    await link(join(trees.data, path), kept.content).catch(undefinedWhenMissing);
    // Content without a record is kept aside for a person.
    await writeMeta(kept.meta, meta, { inHurry: true }).catch(
      logIgnored(log, 'copy the record of a changed file', { path }),
    );
    const found = await stat(kept.content, { bigint: true }).catch(undefinedWhenMissing);
    if (!found) return;
    this.#seen.add(found.ino);
    this.#rescued.set(path, { inode: found.ino, savedMs: 0, isSaving: false });
  }

  async #check(path: string, rescued: RescuedFile): Promise<void> {
    const { tail } = this.#options;
    const found = await this.#contentOf(path);
    if (found?.ino === rescued.inode) return this.#attend(path, rescued, Number(found.mtimeMs));
    // While the NAS is away nothing that was changed can have gone up or been taken away by a user.
    const isFailedWriteBack = this.#isAway || this.#stuck.has(path) || isStuck(await tail(LOG_LINES), path);
    if (isFailedWriteBack && (await keepFailedWriteBack(path, this.#options))) this.#quarantined.add(path);
    await this.#drop(path);
  }

  async #inodeOf(path: string): Promise<bigint | undefined> {
    return (await this.#contentOf(path))?.ino;
  }

  /** Undefined when rclone has deleted it. */
  #contentOf(path: string): Promise<BigIntStats | undefined> {
    return stat(join(this.#options.trees.data, path), { bigint: true }).catch(undefinedWhenMissing);
  }

  async #attend(path: string, rescued: RescuedFile, modifiedMs: number): Promise<void> {
    const { saveRecord, trees } = this.#options;
    const meta = await readMeta(join(trees.meta, path));
    if (meta !== undefined && meta !== 'torn' && !meta.Dirty) return this.#drop(path);
    if (rescued.savedMs === modifiedMs || rescued.isSaving || (!this.#isAway && !this.#stuck.has(path)))
      return;
    rescued.savedMs = modifiedMs;
    rescued.isSaving = true;
    void saveRecord(path, modifiedMs)
      .then(() => this.#copyRecord(path, rescued))
      .catch(logIgnored(this.#options.log, 'save the record of a changed file', { path }))
      .finally(() => (rescued.isSaving = false));
  }

  async #copyRecord(path: string, rescued: RescuedFile): Promise<void> {
    const { cacheDir, trees } = this.#options;
    const meta = await readMeta(join(trees.meta, path));
    if (meta === undefined || meta === 'torn' || !meta.Dirty || this.#rescued.get(path) !== rescued) return;
    // 1.60 saves what was written, and the time of the first change with it.
    const ModTime = new Date(rescued.savedMs).toISOString();
    await writeMeta(namesOf(cacheDir, path).meta, { ...meta, ModTime }, { inHurry: true });
  }

  async #drop(path: string): Promise<void> {
    this.#rescued.delete(path);
    this.#stuck.delete(path);
    const { content, meta } = namesOf(this.#options.cacheDir, path);
    await Promise.all([rm(content, { force: true }), rm(meta, { force: true })]);
  }
}
