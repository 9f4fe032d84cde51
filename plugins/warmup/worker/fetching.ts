import { createReadStream } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CacheView, Clock } from 'mountkeeper';
import { AwayError, stillThere } from './unreachable.ts';
import type { Patience } from './unreachable.ts';
import { linesOf } from '../lines.ts';
import type { ListLine } from './listing.ts';
import { BackPressure } from './back-pressure.ts';
import type { OtherReader } from './back-pressure.ts';
import type { Ending, Order } from '../job-description.ts';
import { Verifier } from './verifier.ts';
import type { Awaited } from './verifier.ts';
import { readThrough } from './reading.ts';
import { FreeSpace } from './free-space.ts';
import type { Counters } from '../scheduler/counters.ts';

/**
 * Number of files read at once in the beginning; one more after each finished file. Servers refuse clients
 * that open too many connections at the same moment.
 */
const FIRST_PLACES = 4;

export interface FetchingParts {
  readonly order: Order;
  readonly view: CacheView;
  readonly clock: Clock;
  readonly counters: Counters;
  readonly patience: Patience;
  readonly openFlags: number;
  /** May change during the run, as may the others. */
  readonly concurrency: () => number;
  readonly otherReaders: () => readonly OtherReader[];
  /** Has the mount look at a folder anew. Never rejects. */
  readonly refresh: (folder: string) => Promise<void>;
}

/** Reads the listed files through the mount: many small files at once, few large ones. */
export class Fetching {
  readonly #parts: FetchingParts;
  readonly #backPressure: BackPressure;
  readonly #freeSpace: FreeSpace;
  readonly #verifier: Verifier;
  readonly #end = new AbortController();
  /** Files that are read a second time, byte by byte, because the cache did not show them complete. */
  readonly #again = new Set<string>();
  readonly #missing: Awaited[] = [];
  #active = 0;
  #places = FIRST_PLACES;
  #aheadBytes = 0;
  #onChange: () => void = () => undefined;

  constructor(parts: FetchingParts) {
    const { view, clock, counters, otherReaders } = parts;
    this.#parts = parts;
    this.#backPressure = new BackPressure(view, clock, otherReaders);
    this.#freeSpace = new FreeSpace(view, clock);
    this.#verifier = new Verifier({
      view,
      clock,
      onWhole: (file) => counters.cached(file.bytes),
      onMissing: (file) => {
        if (!this.#again.has(file.path)) this.#missing.push(file);
        // Read byte by byte: somebody has it open, and the mount saves its metadata only when nobody has.
        else if (view.holds(file.path, file.bytes)) counters.cached(file.bytes);
        else counters.failed(file.path, 'it was read to its end, but the cache does not keep it');
      },
    });
  }

  async run(): Promise<Ending> {
    const { signal } = this.#end;
    const watching = [this.#backPressure.watch(signal), this.#verifier.watch(signal)];
    try {
      const isFull = !(await this.#readList());
      await this.#readMissing();
      this.#throwIfEnded();
      return isFull
        ? { outcome: 'full', reason: 'what is left does not fit into the cache' }
        : { outcome: 'complete', reason: '' };
    } finally {
      this.#end.abort(new Error('ended'));
      await Promise.all(watching);
      this.#verifier.look();
    }
  }

  /** False when a file did not fit; later ones may be small enough. */
  async #readList(): Promise<boolean> {
    let isAll = true;
    for await (const line of linesOf(createReadStream(this.#parts.order.listFile))) {
      const [path, bytes, modifiedMs] = JSON.parse(line) as ListLine;
      await this.#slot(bytes);
      if (await this.#freeSpace.take(bytes, this.#aheadBytes)) this.#start({ path, bytes, modifiedMs });
      else isAll = false;
    }
    return isAll;
  }

  /** Resolves once all files are read, and are complete in the cache or given up. */
  async #readMissing(): Promise<void> {
    while (this.#active > 0 || !this.#verifier.isEmpty || this.#missing.length > 0) {
      this.#throwIfEnded();
      const file = this.#missing.pop();
      if (file !== undefined) {
        this.#again.add(file.path);
        await this.#slot(file.bytes);
        this.#start(file);
      } else {
        await this.#parts.clock.sleep(50);
      }
    }
  }

  /** Waits until one more file may be read. */
  async #slot(bytes: number): Promise<void> {
    for (;;) {
      this.#throwIfEnded();
      const fits = this.#aheadBytes + bytes <= this.#parts.view.aheadBytes;
      const places = this.#backPressure.isBusy ? 1 : Math.min(this.#places, this.#parts.concurrency());
      if (this.#active === 0 || (fits && this.#active < places)) return;
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  #start(file: Awaited): void {
    this.#active += 1;
    this.#aheadBytes += file.bytes;
    void this.#fetch(file)
      .catch((error: unknown) => this.#end.abort(error))
      .finally(() => {
        this.#active -= 1;
        this.#places += 1;
        this.#aheadBytes -= file.bytes;
        this.#onChange();
      });
  }

  async #fetch(file: Awaited): Promise<void> {
    const disown = this.#backPressure.own(file.path);
    try {
      await this.#readTwice(file);
      this.#verifier.expect(file);
    } catch (error) {
      if (!(await stillThere(this.#parts.view, this.#parts.patience)))
        throw new AwayError((error as Error).message);
      this.#parts.counters.failed(file.path, (error as Error).message);
    } finally {
      disown();
    }
  }

  /** A first failure may be due to the connection, or to a listing that was older than the file. */
  async #readTwice(file: Awaited): Promise<void> {
    const { order, view, patience, openFlags, refresh } = this.#parts;
    const reading = {
      file: join(order.mountPoint, file.path),
      bytes: file.bytes,
      backPressure: this.#backPressure,
      openFlags,
    };
    try {
      await readThrough({ ...reading, isThorough: this.#again.has(file.path) });
    } catch (error) {
      if (this.#end.signal.aborted || !(await stillThere(view, patience))) throw error;
      const folder = dirname(file.path);
      // The second read says what is wrong.
      await refresh(folder === '.' ? '' : folder);
      await readThrough({ ...reading, isThorough: true });
    }
  }

  #throwIfEnded(): void {
    this.#end.signal.throwIfAborted();
  }
}
