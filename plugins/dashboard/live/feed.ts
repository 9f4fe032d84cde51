/**
 * One page, rendered once for all readers with the same language and host name. After each rendering only
 * the differences are sent. A reader who reconnects says what it saw last and gets what has changed since,
 * or everything.
 */
import { randomUUID } from 'node:crypto';
import type { EventSink, Logger } from 'mountkeeper';

/** A part of a page that is replaced as a whole. */
export interface Part {
  readonly id: string;
  /** Equal keys mean that nothing has to be rendered again; absent when only rendering can tell. */
  readonly signature?: () => string;
  readonly draw: () => Promise<string> | string;
}

export interface PageModel {
  readonly title: string;
  /** The current parts, in order. */
  parts(): readonly Part[];
  /** The page's main content, with the rendered parts. Sent completely when the list of parts has changed. */
  frame(drawn: (id: string) => string): string;
}

interface Drawn {
  readonly signature: string;
  readonly html: string;
  readonly changedAt: number;
}

/** Sent when the list of parts has changed. */
export const FRAME_EVENT = 'frame';

export class Feed {
  readonly model: PageModel;
  readonly #log: Logger;
  readonly #epoch = randomUUID().slice(0, 8);
  readonly #sinks = new Set<EventSink>();
  #drawn: ReadonlyMap<string, Drawn> = new Map();
  #isDrawn = false;
  #sequence = 0;
  #frameChangedAt = 0;
  #drawing: Promise<void> | undefined;
  #isAsked = false;

  constructor(model: PageModel, log: Logger) {
    this.model = model;
    this.#log = log;
  }

  get readers(): number {
    return this.#sinks.size;
  }

  /** Position of a reader who has seen everything. */
  get position(): string {
    return `${this.#epoch}-${this.#sequence}`;
  }

  /** Empty until it could be drawn once: a frame around nothing would say that there is nothing. */
  html(): string {
    if (!this.#isDrawn) return '';
    return this.model.frame((id) => this.#drawn.get(id)?.html ?? '');
  }

  /** Renders again and sends the differences. Calls during a rendering lead to one more. Never rejects. */
  async refresh(): Promise<void> {
    this.#isAsked = true;
    this.#drawing ??= this.#drawWhileAsked().finally(() => {
      this.#drawing = undefined;
    });
    await this.#drawing;
  }

  /** `seen`: the position up to which the reader has everything. */
  join(sink: EventSink, seen: string | undefined): () => void {
    this.#sinks.add(sink);
    const [epoch, sequence] = (seen ?? '').split('-');
    const from = epoch === this.#epoch && /^\d+$/.test(sequence ?? '') ? Number(sequence) : -1;
    if (this.#frameChangedAt > from) this.#send(FRAME_EVENT, this.html(), [sink]);
    else
      for (const [id, { html, changedAt }] of this.#drawn) if (changedAt > from) this.#send(id, html, [sink]);
    return () => void this.#sinks.delete(sink);
  }

  tell(event: string, data: string): void {
    for (const sink of this.#sinks) sink.send({ event, data });
  }

  async #drawWhileAsked(): Promise<void> {
    while (this.#isAsked) {
      this.#isAsked = false;
      try {
        await this.#drawOnce();
      } catch (err) {
        // What was drawn last stays.
        this.#log.error({ page: this.model.title, err }, 'a page of the dashboard could not be drawn');
      }
    }
  }

  async #drawOnce(): Promise<void> {
    const parts = this.model.parts();
    const drawn = await Promise.all(
      parts.map(async (part) => [part.id, await this.#redraw(part, this.#drawn.get(part.id))] as const),
    );
    const next = new Map(drawn);
    const changed = drawn
      .filter(([id, one]) => one.changedAt !== this.#drawn.get(id)?.changedAt)
      .map(([id]) => id);
    const isOther = !this.#isDrawn || [...next.keys()].join() !== [...this.#drawn.keys()].join();
    this.#drawn = next;
    this.#isDrawn = true;
    if (isOther) {
      this.#sequence += 1;
      this.#frameChangedAt = this.#sequence;
      this.#send(FRAME_EVENT, this.html());
      return;
    }
    for (const id of changed) this.#send(id, next.get(id)?.html ?? '');
  }

  async #redraw(part: Part, known: Drawn | undefined): Promise<Drawn> {
    const signature = part.signature?.();
    if (known && signature !== undefined && signature === known.signature) return known;
    const html = await this.#draw(part, known);
    if (known?.html === html) return { ...known, signature: signature ?? '' };
    this.#sequence += 1;
    return { signature: signature ?? '', html, changedAt: this.#sequence };
  }

  async #draw(part: Part, known: Drawn | undefined): Promise<string> {
    try {
      return await part.draw();
    } catch (err) {
      this.#log.error({ part: part.id, err }, 'a part of the dashboard could not be drawn');
      return known?.html ?? '';
    }
  }

  #send(event: string, data: string, to: Iterable<EventSink> = this.#sinks): void {
    for (const sink of to) sink.send({ event, data, id: this.position });
  }
}
