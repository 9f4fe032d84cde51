import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Refusal } from '../answer.ts';
import { clock } from '../clock.ts';
import { WAITING, wasNeverReached } from '../backend.ts';
import type { Attached } from '../backend.ts';
import { at } from '../places.ts';
import { Unavailable, UNREAD, UNREAD_MS } from '../upstream.ts';
import type { Upstream } from '../upstream.ts';
import type { Journal, LeftUpload, Upload } from './journal.ts';
import { failure, wasRefused, wasUnread } from './put-answers.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import { roomIn } from './spool.ts';
import type { Spooled } from './spool.ts';
import { withoutLostLock } from './undo.ts';

/** How long to wait for a share that goes away meanwhile: it hangs for half a minute at most. */
const COMMIT_MS = 40_000;
const TRY_AGAIN_MS = 200;
const SPARE_BYTES = 16 * 1_048_576;
const OF_OTHERS: Refusal = { status: 412, text: 'Others have put a file there meanwhile.' };
const ELSEWHERE: Refusal = { status: 409, text: 'The share shows another place now.' };
const NOT_NOTED: Refusal = { status: 507, text: 'There is no room for the note of this upload.' };

export interface CommitOptions {
  readonly upstream: Upstream;
  readonly parts: readonly string[];
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Spooled;
  readonly spool: string;
  readonly journal: Journal;
  /** The journal entry of an upload that is repeated; the caller owns the entry and the body. */
  readonly noted?: LeftUpload;
  /** Whether the file is still what is to be replaced: it is written once more when the share could not be read. */
  readonly isAsBefore?: () => Promise<boolean>;
  /** Of an upload that is repeated: whether nobody has changed what is there since. Asked right before each try. */
  readonly isAsSeen?: () => Promise<boolean>;
  /** The place that the share showed when it was looked at what is there. */
  readonly place?: string | undefined;
}

/** Writes a completely received body over a file. Once begun, it is repeated until it succeeds. */
export class Commit {
  readonly #options: CommitOptions;
  #upload: Upload | undefined;
  #wasTouched = false;
  /** When the last try was refused, if that was since the share could not be read. */
  #unreadMs: number | undefined;
  #unreadEnd: number | undefined;
  #left: LeftUpload | undefined;
  #isTakenAway: boolean;
  /** What was asked last to write. */
  #asked: Attached | undefined;
  readonly #begunMs = clock.now();

  constructor(options: CommitOptions) {
    this.#options = options;
    this.#upload = options.noted;
    this.#isTakenAway = options.noted?.isTakenAway === true;
  }

  /** The upload that was begun and not finished; undefined when all is well. */
  get left(): LeftUpload | undefined {
    return this.#left;
  }

  /** Whether what is there may be of this. */
  get wasTouched(): boolean {
    return this.#wasTouched;
  }

  /** Whether a write that failed has taken the file away, as where the disk is full. */
  get isTakenAway(): boolean {
    return this.#isTakenAway;
  }

  /** Undefined when the file is in place. */
  async run(): Promise<Refusal | undefined> {
    const status = (await this.#noRoom()) ?? (await this.#try());
    if (typeof status === 'number' && mayHaveTouched(status)) await this.#lookAfter();
    await this.#close(status);
    if (typeof status === 'object') return status;
    if (status !== undefined && status < 300) return undefined;
    return this.#refusal(status);
  }

  /** An upload that was begun and not finished is passed on to the clean-up. */
  async #close(status: number | Refusal | undefined): Promise<void> {
    const { body, journal, noted } = this.#options;
    if (noted) return;
    // What a refusal says of a later attempt, an earlier one may have spoilt: then nothing but success ends it.
    const isOver = typeof status === 'number' && (status < 300 || (wasRefused(status) && !this.#wasTouched));
    if (!isOver && this.#wasTouched) {
      this.#upload ??= await this.#keep();
      this.#left = await journal.leave(this.#upload, { seenMs: this.#unreadMs, ...this.#found() });
      return;
    }
    if (this.#upload) await journal.end(this.#upload);
    if ('file' in body) await rm(at(body.file), { force: true });
  }

  /** What the journal does not have by itself. */
  #found(): Pick<LeftUpload, 'isTakenAway'> {
    return this.#isTakenAway ? { isTakenAway: true } : {};
  }

  #refusal(status: number | undefined): Refusal {
    return this.#unreadMs === undefined ? failure(status) : UNREAD;
  }

  async #lookAfter(): Promise<void> {
    // It may be all that there is.
    this.#upload ??= await this.#keep();
    const asked = this.#asked;
    // A listing may be a second old, and have what the write has taken away.
    if (asked?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
    // Where nobody knows, the content is kept, and put nowhere where it was not known before either.
    const isMissing = await this.#isMissing().catch(() => undefined);
    if (isMissing !== undefined && this.#options.upstream.attached === asked) this.#isTakenAway = isMissing;
  }

  /** Why nothing may be written there now. */
  async #refusalBy(attached: Attached): Promise<Refusal | undefined> {
    const { upstream, isAsSeen, noted, place = noted?.place } = this.#options;
    if (place !== undefined && attached.share.place !== place) return ELSEWHERE;
    if (!isAsSeen) return undefined;
    // What is there by now may be of this very upload, or of others: who comes next looks at it.
    if (this.#wasTouched) return failure(undefined);
    const isSo = await isAsSeen().catch((cause: unknown) => {
      throw new Unavailable(UNREAD, cause);
    });
    return isSo && upstream.attached === attached ? undefined : OF_OTHERS;
  }

  /** Rejects when that is not known. */
  async #isMissing(): Promise<boolean> {
    const { upstream, parts, headers } = this.#options;
    return (await statOf(upstream, parts, headers['host'] ?? 'localhost')) === undefined;
  }

  /** The backend's answer, or why there is none. */
  async #try(): Promise<number | Refusal | undefined> {
    const { upstream } = this.#options;
    const end = clock.now() + COMMIT_MS;
    for (;;) {
      try {
        const attached = await upstream.ready(end, undefined, true);
        const refusal = await this.#refusalBy(attached);
        if (refusal) return refusal;
        await this.#begin(attached);
        const wasTouched = this.#wasTouched;
        const status = await this.#ask(attached);
        if (!(await this.#mayRepeat(attached, status))) return status;
        this.#wasTouched = wasTouched;
      } catch (error) {
        if (!wasNeverReached(error) && !(error instanceof Unavailable)) this.#wasTouched = true;
        if (clock.now() >= end || error instanceof Unavailable)
          return error instanceof Unavailable ? error.refusal : undefined;
        await upstream.changed(TRY_AGAIN_MS);
      }
    }
  }

  /** What is large is noted first; what is small is sent in one piece. */
  async #begin(attached: Attached): Promise<void> {
    this.#asked = attached;
    this.#unreadMs = undefined;
    if (this.#upload || 'bytes' in this.#options.body) return;
    this.#upload = await this.#keep().catch((cause: unknown) => {
      throw new Unavailable(NOT_NOTED, cause);
    });
  }

  /** Whether the file is as it was, since the share could not be read. */
  async #mayRepeat(attached: Attached, status: number | undefined): Promise<boolean> {
    const atMs = clock.now();
    const isUnread = status !== undefined && (await wasUnread(attached, status));
    this.#unreadMs = isUnread ? atMs : undefined;
    this.#unreadEnd ??= atMs + UNREAD_MS;
    return isUnread && clock.now() < this.#unreadEnd && (await this.#options.isAsBefore?.()) === true;
  }

  /** What has touched the file before is brought to its end, also without the lock under which it began. */
  #ask(attached: Attached): Promise<number | undefined> {
    const { headers, noted } = this.#options;
    const send = (sent: CommitOptions['headers']): Promise<number | undefined> =>
      attached.track(this.#send(attached, sent));
    return noted || this.#wasTouched ? withoutLostLock(headers, send) : send(headers);
  }

  async #send(attached: Attached, headers: CommitOptions['headers']): Promise<number | undefined> {
    const { path, body, journal } = this.#options;
    const length = 'bytes' in body ? body.bytes.length : body.size;
    const isSmall = 'bytes' in body;
    const call = {
      method: 'PUT',
      path,
      headers: { ...headers, 'content-length': length, ...(isSmall ? {} : WAITING) },
    };
    const { request, answered, continued } = attached.begin(call, { fresh: true, lasting: true });
    if (isSmall) request.end(body.bytes);
    else if (await continued) {
      const upload = this.#upload;
      const source = createReadStream(at(body.file), { highWaterMark: 262_144 });
      if (upload) source.on('data', () => journal.touch(upload));
      // The answer tells what became of it.
      await pipeline(source, request).catch(() => undefined);
    }
    const response = await answered;
    response.resume();
    if (mayHaveTouched(response.statusCode ?? 0)) this.#wasTouched = true;
    return response.statusCode;
  }

  /** Writes a body to disk that was only in memory. */
  async #keep(): Promise<Upload> {
    const { journal, upstream, parts, headers, body, spool } = this.#options;
    const file = 'file' in body ? body.file : join(spool, `${randomUUID()}.part`);
    const size = 'bytes' in body ? body.bytes.length : body.size;
    if ('bytes' in body) await writeFile(at(file), body.bytes, { mode: 0o600, flush: true });
    const { place = this.#asked?.share.place } = this.#options;
    const upload = { kind: 'whole', share: upstream.name, parts, headers, body: file, size, place } as const;
    return journal.begin(upload, this.#begunMs);
  }

  /** Checked before it begins: an upload that cannot be finished would leave the file incomplete. */
  async #noRoom(): Promise<Refusal | undefined> {
    const { body, spool } = this.#options;
    const needed = ('bytes' in body ? body.bytes.length : body.size) + SPARE_BYTES;
    return needed > (await roomIn(spool, 0))
      ? { status: 507, text: 'There is no room for this file on the cache disk.' }
      : undefined;
  }
}

/** Whether a backend that answers so may have begun to write. */
function mayHaveTouched(status: number): boolean {
  return status === 405 || status >= 500;
}
