import { createReadStream } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CacheView, Clock } from 'mountkeeper';
import { AwayError, stillThere } from './away.ts';
import type { Patience } from './away.ts';
import { linesOf } from './lines.ts';
import type { ListLine } from './listing.ts';
import { Manners } from './manners.ts';
import type { Neighbour } from './manners.ts';
import type { Ending, Order } from './orders.ts';
import { Proof } from './proof.ts';
import type { Awaited } from './proof.ts';
import { readThrough } from './reading.ts';
import { Room } from './room.ts';
import type { Tally } from './tally.ts';

/** Files at once in the beginning, one more with each that is through: servers turn away who dials too often at the same moment. */
const FIRST_PLACES = 4;

export interface FetchingParts {
  readonly order: Order;
  readonly view: CacheView;
  readonly clock: Clock;
  readonly tally: Tally;
  readonly patience: Patience;
  readonly openFlags: number;
  /** May change while it goes on, as may the others. */
  readonly concurrency: () => number;
  readonly neighbours: () => readonly Neighbour[];
}

/** Reads what is on the list through the mount: many small files at once, few large ones. */
export class Fetching {
  readonly #parts: FetchingParts;
  readonly #manners: Manners;
  readonly #room: Room;
  readonly #proof: Proof;
  readonly #end = new AbortController();
  /** Read a second time, thoroughly, since the cache did not show them whole. */
  readonly #again = new Set<string>();
  readonly #missing: Awaited[] = [];
  #active = 0;
  #places = FIRST_PLACES;
  #aheadBytes = 0;
  #onChange: () => void = () => undefined;

  constructor(parts: FetchingParts) {
    const { view, clock, tally, neighbours } = parts;
    this.#parts = parts;
    this.#manners = new Manners(view, clock, neighbours);
    this.#room = new Room(view, clock);
    this.#proof = new Proof({
      view, clock,
      onWhole: (file) => tally.cached(file.bytes),
      onMissing: (file) => {
        if (!this.#again.has(file.path)) this.#missing.push(file);
        // Read byte for byte: somebody has it open, and the mount writes down what it holds once nobody has.
        else if (view.holds(file.path, file.bytes)) tally.cached(file.bytes);
        else tally.failed(file.path, 'it was read to its end, but the cache does not keep it');
      },
    });
  }

  async run(): Promise<Ending> {
    const { signal } = this.#end;
    const watching = [this.#manners.watch(signal), this.#proof.watch(signal)];
    try {
      const isFull = !(await this.#readList());
      await this.#readMissing();
      this.#throwIfEnded();
      return isFull ? { outcome: 'full', reason: 'what is left does not fit into the cache' } : { outcome: 'complete', reason: '' };
    } finally {
      this.#end.abort(new Error('ended'));
      await Promise.all(watching);
      this.#proof.look();
    }
  }

  /** False when something did not fit; what comes after it may be small enough. */
  async #readList(): Promise<boolean> {
    let isAll = true;
    for await (const line of linesOf(createReadStream(this.#parts.order.listFile))) {
      const [path, bytes, modifiedMs] = JSON.parse(line) as ListLine;
      await this.#place(bytes);
      if (await this.#room.take(bytes, this.#aheadBytes)) this.#start({ path, bytes, modifiedMs });
      else isAll = false;
    }
    return isAll;
  }

  /** Resolves once all is read, and seen in the cache or given up. */
  async #readMissing(): Promise<void> {
    while (this.#active > 0 || !this.#proof.isEmpty || this.#missing.length > 0) {
      this.#throwIfEnded();
      const file = this.#missing.pop();
      if (file !== undefined) {
        this.#again.add(file.path);
        await this.#place(file.bytes);
        this.#start(file);
      } else {
        await this.#parts.clock.sleep(50);
      }
    }
  }

  /** Waits until one more file may be read. */
  async #place(bytes: number): Promise<void> {
    for (;;) {
      this.#throwIfEnded();
      const fits = this.#aheadBytes + bytes <= this.#parts.view.aheadBytes;
      const places = this.#manners.isBusy ? 1 : Math.min(this.#places, this.#parts.concurrency());
      if (this.#active === 0 || (fits && this.#active < places)) return;
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  #start(file: Awaited): void {
    this.#active += 1;
    this.#aheadBytes += file.bytes;
    void this.#fetch(file).catch((error: unknown) => this.#end.abort(error)).finally(() => {
      this.#active -= 1;
      this.#places += 1;
      this.#aheadBytes -= file.bytes;
      this.#onChange();
    });
  }

  async #fetch(file: Awaited): Promise<void> {
    const disown = this.#manners.own(file.path);
    try {
      await this.#readTwice(file);
      this.#proof.expect(file);
    } catch (error) {
      if (!(await stillThere(this.#parts.view, this.#parts.patience))) throw new AwayError((error as Error).message);
      this.#parts.tally.failed(file.path, (error as Error).message);
    } finally {
      disown();
    }
  }

  /** A first failure may be the connection's, or a listing's that was older than the file. */
  async #readTwice(file: Awaited): Promise<void> {
    const { order, view, patience, openFlags } = this.#parts;
    const reading = { file: join(order.mountPoint, file.path), bytes: file.bytes, manners: this.#manners, openFlags };
    try {
      await readThrough({ ...reading, isThorough: this.#again.has(file.path) });
    } catch (error) {
      if (this.#end.signal.aborted || !(await stillThere(view, patience))) throw error;
      const folder = dirname(file.path);
      await view.refresh(folder === '.' ? '' : folder).catch(() => undefined);
      await readThrough({ ...reading, isThorough: true });
    }
  }

  #throwIfEnded(): void {
    this.#end.signal.throwIfAborted();
  }
}
