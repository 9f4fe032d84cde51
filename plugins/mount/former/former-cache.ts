/**
 * Files that a former version left in rclone's write cache: they go up first, since an rclone that only reads would
 * hide them, or send them over what is newer. Then the cache is for reading.
 */
import { endsWithin } from 'mountkeeper';
import { pendingIn } from '../cache/scan.ts';
import { forgetConfig, start } from '../lifecycle/start.ts';
import type { FormerWork, FormerWrites, MountTools } from '../lifecycle/tools.ts';
import { controlAnswers, removeSocket } from '../rclone/control/remote-control.ts';
import { inPlainWords } from '../rclone/error-messages.ts';
import { RcloneFiles } from '../rclone/remote-files.ts';
import { mendFormer } from './former-files.ts';
import { beginReadOnlyCache, isReadOnlyCache } from './read-only-cache.ts';
import { sendFormer } from './send-files.ts';

/** What is sent within this time is not told of. */
const PATIENCE_MS = 10_000;
const LOOK_EVERY_MS = 100;
const ANSWER_MS = 5_000;
const STOP_GRACE_MS = 3_000;
const LAST_LINES = 20;

interface Sending {
  readonly fingerprint: string;
  readonly cacheDir: string;
  readonly end: AbortController;
  /** Resolves with why it ended too early; never rejects. */
  readonly done: Promise<string | undefined>;
  /** Last lines of its rclone. */
  tail: () => Promise<readonly string[]>;
  /** A mount has failed because of it. */
  isTold: boolean;
}

export class FormerCaches implements FormerWrites {
  readonly #tools: MountTools;
  readonly #onSent: (share: string) => void;
  readonly #sending = new Map<string, Sending>();

  /** `onSent`: all has gone up that a mount of this share has failed for. */
  constructor(tools: MountTools, onSent: (share: string) => void) {
    this.#tools = tools;
    this.#onSent = onSent;
  }

  async finish(share: string, fingerprint: string, signal: AbortSignal): Promise<void> {
    const sending = this.#sending.get(share);
    if (!sending) return;
    if (sending.fingerprint !== fingerprint) {
      sending.end.abort();
      await sending.done;
      return;
    }
    await this.#patiently(sending, signal);
  }

  async empty(work: FormerWork, signal: AbortSignal): Promise<void> {
    const { spec, plan, cacheDir } = work;
    if (await isReadOnlyCache(cacheDir)) return;
    const { clock, log, processes } = this.#tools;
    const share = spec.share.name;
    await mendFormer({ cacheDir, clock, log: log.child({ share }), processes });
    const { count } = await pendingIn(cacheDir);
    if (count > 0) {
      log.info({ share, files: count }, 'files that a former version wrote go up first');
      await this.#patiently(this.#begin(work, plan.fingerprint), signal);
    }
    await beginReadOnlyCache(cacheDir);
  }

  /** Ends what is being sent; what is left goes up at the next start. */
  async close(): Promise<void> {
    const all = [...this.#sending.values()];
    for (const { end } of all) end.abort();
    await Promise.all(all.map(({ done }) => done));
  }

  async #patiently(sending: Sending, signal: AbortSignal): Promise<void> {
    const isOver = await endsWithin(this.#tools.clock, PATIENCE_MS, sending.done);
    signal.throwIfAborted();
    const { count } = await pendingIn(sending.cacheDir);
    if (isOver && count === 0) return;
    sending.isTold = true;
    const reason = isOver
      ? ((await sending.done) ?? 'they could not be sent')
      : inPlainWords(await sending.tail(), '');
    throw new Error(
      `${count === 1 ? 'one file' : `${count} files`} that a former version wrote ` +
        `${count === 1 ? 'goes' : 'go'} up first, then the share is mounted${reason && ` (${reason})`}`,
    );
  }

  #begin(work: FormerWork, fingerprint: string): Sending {
    const share = work.spec.share.name;
    const end = new AbortController();
    const sending: Sending = {
      fingerprint,
      cacheDir: work.cacheDir,
      end,
      tail: () => Promise.resolve([]),
      isTold: false,
      done: Promise.resolve()
        .then(() => this.#send(work, end.signal, (tail) => (sending.tail = tail)))
        .then(
          () => undefined,
          (error: unknown) => (error as Error).message,
        )
        .then((reason) => {
          this.#sending.delete(share);
          if (reason === undefined && sending.isTold) this.#onSent(share);
          return reason;
        }),
    };
    this.#sending.set(share, sending);
    return sending;
  }

  async #send(
    { spec, plan, cacheDir }: FormerWork,
    signal: AbortSignal,
    began: (tail: Sending['tail']) => void,
  ): Promise<void> {
    const { clock, log } = this.#tools;
    const { process, notes } = await start(spec, { plan, sends: true }, cacheDir, this.#tools);
    began(() => process.tail(LAST_LINES));
    const remote = new RcloneFiles({ address: notes.rc, fs: notes.fs, type: spec.connection.type, clock });
    try {
      while (!(await controlAnswers(notes.rc, clock.deadline(ANSWER_MS, signal)))) {
        signal.throwIfAborted();
        if (!process.isAlive())
          throw new Error(inPlainWords(await process.tail(LAST_LINES), 'rclone has ended too early'));
        await clock.sleep(LOOK_EVERY_MS, signal);
      }
      const { name, remote_path: remotePath } = spec.share;
      await sendFormer({ cacheDir, remotePath, remote, clock, log: log.child({ share: name }), signal });
    } finally {
      remote.close();
      await process.stop({ graceMs: STOP_GRACE_MS });
      await removeSocket(notes.rc);
      await forgetConfig(spec, this.#tools);
    }
  }
}
