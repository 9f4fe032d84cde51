/**
 * What another plugin shows, kept from holding up or breaking the rest of the page: one that takes long is
 * shown when it is through, one that throws or never ends is replaced by a sentence.
 */
import type { Clock, Content, Logger } from 'mountkeeper';

/** The page goes on without it after this. */
const PATIENCE_MS = 250;
const LONGEST_MS = 10_000;

export interface PluginPartOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Named in the log. */
  readonly plugin: string;
  readonly render: () => Content | Promise<Content>;
  readonly toHtml: (content: Content) => string;
  readonly failed: () => string;
  /** It is through after all. */
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
    const { clock } = this.#options;
    this.#running ??= this.#render().finally(() => {
      this.#running = undefined;
    });
    const isThrough = new AbortController();
    const running = this.#running;
    const late = clock.sleep(PATIENCE_MS, isThrough.signal).then(
      () => void running.then(() => this.#options.onLate()),
      () => undefined,
    );
    await Promise.race([running, late]);
    isThrough.abort();
    return this.#html;
  }

  async #render(): Promise<void> {
    const { clock, log, plugin, render, toHtml, failed } = this.#options;
    const isThrough = new AbortController();
    try {
      const tooLong = clock.sleep(LONGEST_MS, isThrough.signal).then(() => {
        throw new Error('it took too long');
      });
      tooLong.catch(() => undefined);
      this.#html = toHtml(await Promise.race([Promise.resolve().then(render), tooLong]));
    } catch (err) {
      log.warn({ shownBy: plugin, err }, 'a part of the dashboard was not drawn');
      this.#html = failed();
    } finally {
      isThrough.abort();
    }
  }
}
