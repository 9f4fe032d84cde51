/**
 * Renders what another plugin shows without letting it delay or break the rest of the page: a slow plugin
 * is shown when it has finished, one that throws or hangs is replaced by a sentence.
 */
import { timeBox, timeBoxOr } from 'mountkeeper';
import type { Clock, Content } from 'mountkeeper';
import type { NotDrawn } from './not-drawn.ts';

/** How long the page waits for it. */
const PATIENCE_MS = 250;
const LONGEST_MS = 10_000;

export interface PluginPartOptions {
  readonly clock: Clock;
  /** Where it is told that it was not drawn. */
  readonly notDrawn: Pick<NotDrawn, 'tell' | 'forget'>;
  readonly render: () => Content | Promise<Content>;
  readonly toHtml: (content: Content) => string;
  readonly failed: () => string;
  /** Called when it has finished after all. */
  readonly onLate: () => void;
}

export class PluginPart {
  readonly #options: PluginPartOptions;
  #html = '';
  #running: Promise<void> | undefined;
  /** The rendering that `onLate` is called for. */
  #late: Promise<void> | undefined;
  /** It has finished, and was not shown yet. */
  #isNew = false;

  constructor(options: PluginPartOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async draw(): Promise<string> {
    // Rendered again for this one it would be late again, and so for ever.
    if (this.#isNew) {
      this.#isNew = false;
      return this.#html;
    }
    this.#running ??= this.#render().finally(() => {
      this.#running = undefined;
    });
    const running = this.#running;
    await timeBoxOr(this.#options.clock, PATIENCE_MS, running, () => this.#awaitLate(running));
    return this.#html;
  }

  #awaitLate(running: Promise<void>): void {
    if (this.#late === running) return;
    this.#late = running;
    void running.then(() => {
      this.#isNew = true;
      this.#options.onLate();
    });
  }

  async #render(): Promise<void> {
    const { clock, notDrawn, render, toHtml, failed } = this.#options;
    try {
      const drawing = Promise.resolve().then(render);
      this.#html = toHtml(await timeBox(clock, LONGEST_MS, drawing, 'it took too long'));
      notDrawn.forget();
    } catch (err) {
      notDrawn.tell(err, 'a part of the dashboard was not drawn');
      this.#html = failed();
    }
  }
}
