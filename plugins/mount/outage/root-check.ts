/**
 * Watches a share's folder on the remote itself, while the NAS answers: it may be gone (deleted, renamed, on a disk
 * that the NAS has lost), or be the empty folder that such a disk was mounted on. Whatever were sent then would make
 * the path anew, on another disk, and be hidden when the right one is back; and folders that rclone asks for there
 * show empty.
 */
import { unlessAborted } from 'mountkeeper';
import type { Clock, Logger, RemoteFailure, RemoteRoot } from 'mountkeeper';
import { callFailure } from '../rclone/error-messages.ts';
import { RcRefusal } from '../rclone/control/remote-control.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';
import type { ListedName, RootNames } from './root-names.ts';

/** While nothing is sent or read anew. */
const LOOK_EVERY_MS = 60_000;
const LOOK_AGAIN_MS = 5_000;
/** No NAS loses power and is there again sooner. */
const BOOT_MS = 15_000;
/**
 * Before a change, a look that began earlier counts no more. So little, because what is sent within it after the
 * loss of a disk lands on another one; and a listing of a usual folder takes some milliseconds.
 */
const FRESH_MS = 2_000;
/** Where the listing takes long, looks take up at most one twentieth of the time. */
const REST_FACTOR = 20;
const DEADLINE_MS = 60_000;
const MOST_SAID = 3;
const LONGEST_NAME = 40;
const IS_MISSING =
  /directory not found|no such file or directory|object not found|bad_network_name|NoSuchBucket/i;

export interface RootCheckOptions {
  readonly shareName: string;
  readonly rc: RcClient;
  /** The remote in rclone's notation. */
  readonly fs: string;
  readonly names: RootNames;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when it is there again: what was read meanwhile may be wrong. */
  readonly onBack: () => void;
}

export class RootCheck {
  readonly #options: RootCheckOptions;
  #state: 'there' | 'missing' | 'emptied' = 'there';
  #looking: Promise<void> | undefined;
  /** When the last look that has told something began, in monotonic milliseconds. */
  #lookedAtMs = -Infinity;
  #foundAtMs = -Infinity;
  #answeredAtMs = -Infinity;
  #hasAnswered = false;
  #silentSinceMs: number | undefined;
  #lastSilence: RemoteRoot['lastSilence'];
  #tookMs = 0;
  #isDue = true;
  #isBucket: boolean | undefined;
  #isListed = false;

  constructor(options: RootCheckOptions) {
    this.#options = options;
  }

  /** When the last look began that has found it, in monotonic milliseconds. */
  get foundAtMs(): number {
    return this.#foundAtMs;
  }

  /** Whether the remote has answered anything yet, whatever became of it since. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** In monotonic milliseconds; undefined while the remote answers. */
  get silentSinceMs(): number | undefined {
    return this.#silentSinceMs;
  }

  get lastSilence(): RemoteRoot['lastSilence'] {
    return this.#lastSilence;
  }

  /** The last look has listed it; what is in a bucket is never listed. */
  get isListed(): boolean {
    return this.#isListed;
  }

  get isLost(): boolean {
    return this.#state !== 'there';
  }

  /** A plain sentence; undefined while it is what it was, as far as is known. */
  get trouble(): string | undefined {
    if (this.#state === 'there') return undefined;
    if (this.#state === 'missing')
      return (
        'its path is not there; nothing is sent until it is back: ' +
        'check whether a disk of the NAS is missing'
      );
    return (
      `its folder has lost all names that it had (${this.#namesSaid()}); nothing is sent or deleted until they are ` +
      'back: check whether a disk of the NAS is missing, or, if the folder is meant to be as it is, run ' +
      `\`mountkeeper reconnect ${this.#options.shareName}\``
    );
  }

  #namesSaid(): string {
    const { kept } = this.#options.names;
    const said = kept.slice(0, MOST_SAID).map(({ name }) => `'${shown(name)}'`);
    return said.join(', ') + (kept.length > MOST_SAID ? ', …' : '');
  }

  /** Call it whenever the remote has just answered. Waits for nothing. */
  answered(): void {
    this.#hasAnswered = true;
    const [fromMs, toMs] = [this.#silentSinceMs, this.#options.clock.monotonic()];
    // Shorter, it was slow, or the line was.
    if (fromMs !== undefined && toMs - fromMs >= BOOT_MS) this.#lastSilence = { fromMs, toMs };
    this.#silentSinceMs = undefined;
    this.#answeredAtMs = toMs;
    const restMs = this.#state === 'there' ? LOOK_EVERY_MS : LOOK_AGAIN_MS;
    const sinceMs = this.#options.clock.monotonic() - this.#lookedAtMs;
    const isDue = this.#isDue || sinceMs >= restMs || this.#options.names.isChanged;
    // A look that fails tells nothing, and is repeated at the next answer.
    if (isDue && !this.#isFresh) void this.look().catch(() => undefined);
  }

  /** The remote does not answer: it is looked at when it does again. */
  silent(): void {
    this.#silentSinceMs ??= this.#options.clock.monotonic();
    this.#outdate();
  }

  /** The remote has said of something that its folder is not there. */
  suspect(): void {
    this.#outdate();
    // As above.
    void this.look().catch(() => undefined);
  }

  #outdate(): void {
    this.#isDue = true;
    this.#lookedAtMs = -Infinity;
  }

  get #isFresh(): boolean {
    const freshMs = Math.min(LOOK_EVERY_MS, Math.max(FRESH_MS, REST_FACTOR * this.#tookMs));
    return this.#options.clock.monotonic() - this.#lookedAtMs < freshMs;
  }

  /**
   * Resolves when the folder was there a moment ago. Rejects with what is wrong with it, as with a remote that does
   * not answer: all that waits waits on. To be called before anything is asked or changed on the remote.
   */
  async admit(signal: AbortSignal): Promise<void> {
    if (!this.#isFresh) await unlessAborted(signal, this.look());
    const { trouble } = this;
    if (trouble === undefined) return;
    throw Object.assign(new Error(trouble), { remote: 'silent' } as Pick<RemoteFailure, 'remote'>);
  }

  /** Runs a change of these paths, which our own changes must not make look like a loss. */
  async changing<T>(paths: readonly string[], change: () => Promise<T>): Promise<T> {
    const { names } = this.#options;
    const note = (): Promise<void> => {
      for (const path of paths) names.changed(path);
      return names.save();
    };
    await note();
    try {
      return await change();
    } finally {
      await note();
    }
  }

  /** What is there now is meant to be there. What is missing stays missing. */
  accept(): void {
    if (this.#state !== 'emptied') return;
    this.#options.names.forget();
    this.#enter('there');
  }

  /** Resolves when what is known is on the disk. */
  saved(): Promise<void> {
    return this.#options.names.save();
  }

  /** Rejects where the remote does not answer. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { clock, names } = this.#options;
    const beganMs = clock.monotonic();
    const signal = clock.deadline(DEADLINE_MS);
    this.#isDue = false;
    let countsFromMs = beganMs;
    try {
      await names.read();
      const listed = await this.#list(signal);
      // No disk is mounted on a bucket, and programs empty one as they like.
      const isSame = this.#isBucket === true || names.listed(listed, beganMs);
      this.#enter(isSame ? 'there' : 'emptied', beganMs);
    } catch (error) {
      const { message } = error as Error;
      const failure = callFailure(error as Error, signal);
      // Such a long listing, on a remote that answers others meanwhile, is not asked for again for a while.
      const isTooSlow = signal.aborted && this.#answeredAtMs > beganMs;
      if (failure.remote === 'silent' && !isTooSlow) {
        this.#outdate();
        throw failure;
      }
      // Any other answer says nothing about the folder.
      if (error instanceof RcRefusal && IS_MISSING.test(message)) this.#enter('missing', beganMs);
      if (isTooSlow) countsFromMs = clock.monotonic();
    }
    this.#hasAnswered = true;
    this.#lookedAtMs = countsFromMs;
    this.#tookMs = clock.monotonic() - beganMs;
  }

  async #list(signal: AbortSignal): Promise<readonly ListedName[]> {
    const { fs, rc } = this.#options;
    this.#isListed = false;
    if (this.#isBucket === undefined) {
      const { Features } = await rc.call<{ Features: Readonly<Record<string, boolean>> }>(
        'operations/fsinfo',
        { fs },
        signal,
      );
      this.#isBucket = Features['BucketBased'] === true;
    }
    // It is neither missed nor compared there, and a list may cost money.
    if (this.#isBucket && isInBucket(fs)) return [];
    const opt = { noModTime: true, noMimeType: true };
    const { list } = await rc.call<{ list: readonly ListedName[] | null }>(
      'operations/list',
      { fs, remote: '', opt },
      signal,
    );
    this.#isListed = true;
    return list ?? [];
  }

  #enter(state: 'there' | 'missing' | 'emptied', beganMs = this.#foundAtMs): void {
    if (state === 'there') this.#foundAtMs = beganMs;
    if (state === this.#state) return;
    const { log, onBack } = this.#options;
    this.#state = state;
    if (state === 'there') {
      log.info('the folder of the share is there again');
      onBack();
    } else log.warn({ reason: this.trouble }, 'nothing is sent to the remote');
  }
}

/** Others choose the names on a NAS. */
function shown(name: string): string {
  const clean = name.replaceAll(/\p{Cc}/gu, '?');
  return clean.length > LONGEST_NAME ? `${clean.slice(0, LONGEST_NAME)}…` : clean;
}

/** `nas:bucket/photos`: a folder in a bucket is gone with the last thing in it. */
function isInBucket(fs: string): boolean {
  return fs
    .slice(fs.indexOf(':') + 1)
    .replace(/^\/|\/$/g, '')
    .includes('/');
}
