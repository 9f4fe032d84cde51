/**
 * A page of the dashboard in real Chromium, and everything that it must not do: errors in the console,
 * requests to other hosts.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What is pressed and is no button, link or field, or is left out when somebody goes on by the Tab key. */
const PRESSED = '[hx-get], [hx-post], [data-copy], [data-choose], [data-line], summary';
const FOR_MICE_ALONE = `[...document.querySelectorAll('${PRESSED}')]
  .filter((one) => !one.matches('form, [hx-trigger]'))
  .filter((one) => !one.matches('button, a[href], input, select, textarea, summary') || one.tabIndex < 0)
  .map((one) => one.outerHTML.slice(0, 120))`;

const LISTEN = `(() => {
  const isHeard = window.aloud !== undefined;
  window.aloud = [];
  if (isHeard) return;
  const LIVE = '[role=alert], [role=status], [aria-live]';
  new MutationObserver((changes) => {
    const places = new Set(changes.map(({ target }) =>
      (target instanceof Element ? target : target.parentElement)?.closest(LIVE)));
    for (const place of places) if (place?.textContent) window.aloud.push(place.textContent.trim());
  }).observe(document.body, { childList: true, characterData: true, subtree: true, attributes: true });
})()`;

/** A page that records what it must not do. */
export class WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly #faults: string[];

  private constructor(context: BrowserContext, page: Page, faults: string[]) {
    this.context = context;
    this.page = page;
    this.#faults = faults;
  }

  /** `origin`: where everything has to come from. */
  static async open(
    browser: Browser,
    origin: string,
    options: BrowserContextOptions = {},
  ): Promise<WatchedPage> {
    const context = await browser.newContext({ locale: 'en', ...options });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
    page.on('request', (request) => {
      if (!request.url().startsWith(`${origin}/`)) faults.push(`request to ${request.url()}`);
    });
    return new WatchedPage(context, page, faults);
  }

  /** What was seen so far; whoever takes a daemon away expects some of it. */
  takeFaults(): readonly string[] {
    return this.#faults.splice(0);
  }

  /** Throws an AssertionError that names every error and foreign request since the last look. */
  assertClean(): void {
    assert.deepEqual(this.takeFaults(), []);
  }

  /** Nothing that keeps people out, by axe's rules, and nothing that only a mouse can press. */
  async assertAccessible(what: string): Promise<void> {
    assert.deepEqual(await this.page.evaluate<readonly string[]>(FOR_MICE_ALONE), [], what);
    const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    // Past the page's policy, as a debugger may.
    await this.page.evaluate(axe);
    const violations = await this.page.evaluate<readonly Violation[]>(
      'axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)',
    );
    const serious = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
    assert.deepEqual(
      serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
      [],
      what,
    );
  }

  /** Fills in the page to sign in, on which the browser is. */
  async signIn(password: string): Promise<void> {
    await this.page.fill('[name=username]', 'admin');
    await this.page.fill('[name=password]', password);
    await this.page.click('button');
  }

  /** From now on: what a screen reader says by itself, as the elements say that are marked so. */
  listen(): Promise<void> {
    return this.page.evaluate(LISTEN);
  }

  /** What it has said since then. */
  aloud(): Promise<readonly string[]> {
    return this.page.evaluate('window.aloud');
  }

  /** The sentence's state, such as `saved`. */
  async sentence(): Promise<string> {
    return (await this.page.locator('.sentence').getAttribute('data-key')) ?? '';
  }

  /** What a share's card says of its state. */
  tone(share: string): Promise<string | null> {
    return this.page.locator(`.share[data-share="${share}"]`).getAttribute('data-tone', { timeout: 2_000 });
  }
}
