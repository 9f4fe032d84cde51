/**
 * Renders what another plugin shows without letting it delay or break the rest of the page: a slow plugin
 * is shown when it has finished, one that throws or hangs is replaced by a sentence.
 */
import { timeBox, timeBoxOr } from 'mountkeeper';
import type { Clock, Content, Logger } from 'mountkeeper';

/** How long the page waits for it. */
const PATIENCE_MS = 250;
const LONGEST_MS = 10_000;

export interface PluginPartOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Name for the log. */
  readonly plugin: string;
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

  constructor(options: PluginPartOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async draw(): Promise<string> {
    const { clock, onLate } = this.#options;
    this.#running ??= this.#render().finally(() => {
      this.#running = undefined;
    });
    const running = this.#running;
    await timeBoxOr(clock, PATIENCE_MS, running, () => void running.then(onLate));
    return this.#html;
  }

  async #render(): Promise<void> {
    const { clock, log, plugin, render, toHtml, failed } = this.#options;
    try {
      const drawing = Promise.resolve().then(render);
      this.#html = toHtml(await timeBox(clock, LONGEST_MS, drawing, 'it took too long'));
    } catch (err) {
      log.warn({ shownBy: plugin, err }, 'a part of the dashboard was not drawn');
      this.#html = failed();
    }
  }
}
