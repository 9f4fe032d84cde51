/**
 * One page, rendered once for all readers with the same language and host name. After each rendering only
 * the differences are sent. A reader who reconnects says what it saw last and gets what has changed since,
 * or everything.
 */
import { randomUUID } from 'node:crypto';
import type { EventSink, Logger, StreamEvent } from 'mountkeeper';

/** A part of a page that is replaced as a whole. */
export interface Part {
  readonly id: string;
  /** Equal keys mean that nothing has to be rendered again; absent when only rendering can tell. */
  readonly signature?: () => string;
  readonly draw: () => Promise<string> | string;
  /**
   * What may change without a new rendering, by the names of `live` elements; all else is in `signature`. Sent
   * alone, which costs the daemon and the browser a small part of what rendering does.
   */
  readonly values?: () => Values;
  /** It stands beside the frame, and is sent after it. */
  readonly isOutside?: boolean;
}

/** Texts by `NAME`, attributes by `NAME@ATTRIBUTE`; an empty one is not there. */
export type Values = Readonly<Record<string, string>>;

export interface PageModel {
  readonly title: string;
  /** The current parts, in order. */
  parts(): readonly Part[];
  /** What the frame shows beside its parts, as values that are compared by identity. Default: nothing that changes. */
  layout?(): readonly unknown[];
  /**
   * The page's main content, with the rendered parts. Sent completely when the list of parts or the layout has
   * changed.
   */
  frame(drawn: (id: string) => string): string;
}

interface Drawn {
  readonly signature: string;
  readonly html: string;
  readonly isOutside: boolean;
  readonly changedAt: number;
  /** As the part gave them: the same object has not changed. */
  readonly given: Values | undefined;
  /** The same as JSON. */
  readonly values: string | undefined;
  readonly valuesAt: number;
  /** The values that stand in `html`, which may be older ones. */
  readonly drawnValues: string | undefined;
}

type Fresh = Pick<Drawn, 'signature' | 'html' | 'isOutside' | 'given' | 'values'>;

/** Sent when the list of parts or the layout has changed. */
export const FRAME_EVENT = 'frame';
/** Each line of its data is JSON: `{ id, values }`. */
export const VALUES_EVENT = 'values';

/** So many parts, or readers, before whoever else asks the daemon for something has a turn. */
const IN_ONE_GO = 20;

export class Feed {
  readonly model: PageModel;
  readonly #log: Logger;
  readonly #epoch = randomUUID().slice(0, 8);
  readonly #sinks = new Set<EventSink>();
  #drawn: ReadonlyMap<string, Drawn> = new Map();
  #layout: readonly unknown[] = [];
  #isDrawn = false;
  #sequence = 0;
  /** That of what is drawn, not of what is being drawn. */
  #drawnSequence = 0;
  #frameChangedAt = 0;
  #drawing: Promise<void> | undefined;
  #isAsked = false;
  #isWhole = false;

  constructor(model: PageModel, log: Logger) {
    this.model = model;
    this.#log = log;
  }

  get readers(): number {
    return this.#sinks.size;
  }

  /** Position of a reader who has seen everything. */
  get position(): string {
    return `${this.#epoch}-${this.#drawnSequence}`;
  }

  /** Empty until it could be drawn once: a frame around nothing would say that there is nothing. */
  html(): string {
    if (!this.#isDrawn) return '';
    return this.model.frame((id) => this.part(id));
  }

  /** Empty where there is none, or none drawn yet. */
  part(id: string): string {
    return this.#drawn.get(id)?.html ?? '';
  }

  /**
   * Renders again and sends the differences. Calls during a rendering lead to one more. `isWhole`: `html` has the
   * newest values then, too. Never rejects.
   */
  async refresh({ isWhole = false }: { readonly isWhole?: boolean } = {}): Promise<void> {
    this.#isAsked = true;
    this.#isWhole ||= isWhole;
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
    // Before it could be drawn there is nothing to send: an empty frame would empty the reader's page.
    if (this.#isDrawn)
      sink.sendAll(this.#frameChangedAt > from ? this.#frameEvents() : this.#eventsSince(from));
    return () => void this.#sinks.delete(sink);
  }

  tell(event: string, data: string): void {
    send(this.#sinks, { event, data });
  }

  async #drawWhileAsked(): Promise<void> {
    while (this.#isAsked) {
      this.#isAsked = false;
      const isWhole = this.#isWhole;
      this.#isWhole = false;
      try {
        await this.#drawOnce(isWhole);
      } catch (err) {
        // What was drawn last stays.
        this.#log.error({ page: this.model.title, err }, 'a page of the dashboard could not be drawn');
      }
    }
  }

  async #drawOnce(isWhole: boolean): Promise<void> {
    const from = this.#sequence;
    const layout = this.model.layout?.() ?? [];
    const next = await this.#redrawAll(isWhole);
    const isOther = this.#isOther(next, layout);
    this.#drawn = next;
    this.#layout = layout;
    this.#isDrawn = true;
    if (isOther) this.#frameChangedAt = this.#sequence += 1;
    this.#drawnSequence = this.#sequence;
    const events = isOther ? this.#frameEvents() : this.#eventsSince(from);
    for (const some of portions([...this.#sinks])) {
      for (const sink of some) if (this.#sinks.has(sink)) sink.sendAll(events);
      if (some.length === IN_ONE_GO) await others();
    }
  }

  #isOther(next: ReadonlyMap<string, Drawn>, layout: readonly unknown[]): boolean {
    const isSameList = isSame([...next.keys()], [...this.#drawn.keys()]);
    return !this.#isDrawn || !isSameList || !isSame(layout, this.#layout);
  }

  async #redrawAll(isWhole: boolean): Promise<ReadonlyMap<string, Drawn>> {
    const next = new Map<string, Drawn>();
    for (const some of portions(this.model.parts())) {
      const drawn = some.map((part) => [part.id, this.#redraw(part, isWhole)] as const);
      // Most parts have other values at most, and are there at once.
      for (const [id, one] of drawn) next.set(id, one instanceof Promise ? await one : one);
      if (some.length === IN_ONE_GO) await others();
    }
    return next;
  }

  #redraw(part: Part, isWhole: boolean): Drawn | Promise<Drawn> {
    const known = this.#drawn.get(part.id);
    const signature = part.signature?.();
    const given = part.values?.();
    const values = jsonOf(given, known);
    if (!known || signature === undefined || signature !== known.signature)
      return this.#draw(part, known).then((html) =>
        this.#anew(known, {
          signature: signature ?? '',
          html,
          isOutside: part.isOutside === true,
          given,
          values,
        }),
      );
    const current = this.#withValues(known, { given, values });
    if (!isWhole || current.drawnValues === values) return current;
    // Readers have these values already.
    return this.#draw(part, known).then((html) => ({ ...current, html, drawnValues: values }));
  }

  #anew(known: Drawn | undefined, drawn: Fresh): Drawn {
    return known?.html === drawn.html
      ? { ...this.#withValues(known, drawn), ...drawn, drawnValues: drawn.values }
      : this.#changed(drawn);
  }

  #changed(drawn: Fresh): Drawn {
    this.#sequence += 1;
    return { ...drawn, changedAt: this.#sequence, valuesAt: this.#sequence, drawnValues: drawn.values };
  }

  #withValues(known: Drawn, { given, values }: Pick<Drawn, 'given' | 'values'>): Drawn {
    if (values === known.values) return known;
    this.#sequence += 1;
    return { ...known, given, values, valuesAt: this.#sequence };
  }

  async #draw(part: Part, known: Drawn | undefined): Promise<string> {
    try {
      return await part.draw();
    } catch (err) {
      this.#log.error({ part: part.id, err }, 'a part of the dashboard could not be drawn');
      return known?.html ?? '';
    }
  }

  #frameEvents(): readonly StreamEvent[] {
    const values = [...this.#drawn].filter(([, drawn]) => isOld(drawn)).map(valuesEvent);
    const outside = [...this.#drawn].filter(([, drawn]) => drawn.isOutside);
    return this.#positioned([
      { event: FRAME_EVENT, data: this.html() },
      ...outside.map(([id, { html }]) => ({ event: id, data: html })),
      ...values,
    ]);
  }

  #eventsSince(from: number): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const [id, drawn] of this.#drawn) {
      const isDrawnAnew = drawn.changedAt > from;
      if (isDrawnAnew) events.push({ event: id, data: drawn.html });
      if (isDrawnAnew ? isOld(drawn) : drawn.valuesAt > from) events.push(valuesEvent([id, drawn]));
    }
    return this.#positioned(events);
  }

  /** Only the last one has the position: a reader whose connection ends before it has not seen everything. */
  #positioned(events: readonly StreamEvent[]): readonly StreamEvent[] {
    return events.map((event, index) =>
      index === events.length - 1 ? { ...event, id: this.position } : event,
    );
  }
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

function others(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

function portions<T>(all: readonly T[]): (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / IN_ONE_GO) }, (_, index) =>
    all.slice(index * IN_ONE_GO, (index + 1) * IN_ONE_GO),
  );
}

/** Those of one part replace each other: each has all of them. */
function valuesEvent([id, { values = '{}' }]: readonly [string, Drawn]): StreamEvent {
  const data = `{"id":${JSON.stringify(id)},"values":${values}}`;
  return { event: VALUES_EVENT, replaces: `${VALUES_EVENT} ${id}`, joins: true, data };
}

function jsonOf(given: Values | undefined, known: Drawn | undefined): string | undefined {
  return given && given === known?.given ? known.values : JSON.stringify(given);
}

/** Whether its markup has older values than it should. */
function isOld({ values, drawnValues }: Drawn): boolean {
  return values !== drawnValues;
}

/** One event for all of them, so that it is encoded once. */
function send(to: Iterable<EventSink>, event: StreamEvent): void {
  for (const sink of to) sink.send(event);
}
