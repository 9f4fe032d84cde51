/** The settings page of a real daemon with one share, as somebody uses it who changes settings. */
import { readFile } from 'node:fs/promises';
import type { Browser, Locator } from 'playwright-core';
import { Daemon } from '../daemon/daemon.ts';
import { Nas } from '../nas/nas.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { openBrowser } from './chromium.ts';
import { press } from './keyboard.ts';
import { WatchedPage } from './watched-page.ts';

export interface SettingsPages {
  readonly daemon: Daemon;
  readonly nas: Nas;
  readonly browser: Browser;
  /** What the daemon was started with. */
  readonly text: string;
  readonly origin: string;
  open(locale?: string): Promise<WatchedPage>;
  /** What the configuration's file has now. */
  file(): Promise<string>;
}

/** Started, with the share `files` healthy. */
export async function openSettings(scratch: Scratch): Promise<SettingsPages> {
  const nas = await Nas.create(scratch, { files: { 'a.txt': 500 } });
  const daemon = await Daemon.create(scratch, {
    connections: [nas.connection('nas')],
    shares: [{ name: 'files', connection: 'nas' }],
  });
  const text = `# Ada's notes\n${daemon.text()}\n[bandwidth] # of the office\nup = "5M" # not more\n`;
  await daemon.writeConfig(text);
  await daemon.start();
  await daemon.healthy();
  const browser = await openBrowser(scratch);
  const origin = `http://127.0.0.1:${daemon.port}`;
  return {
    daemon,
    nas,
    browser,
    text,
    origin,
    async open(locale = 'en') {
      const watched = await WatchedPage.open(browser, origin, { locale });
      watched.page.on('dialog', (dialog) => void dialog.accept());
      await watched.page.goto(`${origin}/tabs/settings`);
      return watched;
    },
    file: () => readFile(daemon.configFile, 'utf8'),
  };
}

/** The field of the form for a key such as `bandwidth.up` or `shares[0].remote_path`. */
export function field({ page }: WatchedPage, path: string): Locator {
  return page.locator(`[data-field="${path.replaceAll('"', '\\"')}"] :is(input, select, textarea)`);
}

/** The whole file, as somebody edits it. */
export function text({ page }: WatchedPage): Locator {
  return page.locator('#settings-text');
}

/** Waits until the text holds what fits. */
export function holds(watched: WatchedPage, what: string, words: RegExp): Promise<unknown> {
  return until(what, async () => words.test(await text(watched).inputValue()), { timeoutMs: 10_000 });
}

/** Waits until a problem is said at a field. */
export function problem({ page }: WatchedPage, path: string, said: RegExp): Promise<unknown> {
  const place = page.locator(`[data-field="${path}"] .problem`).first();
  return until(
    `it is said at ${path}`,
    async () => (await place.count()) === 1 && said.test(await place.innerText()),
    { timeoutMs: 10_000 },
  );
}

/** Waits until a part of the page says what fits. */
export function says(what: string, place: Locator, words: RegExp, timeoutMs = 10_000): Promise<unknown> {
  return until(what, async () => words.test(await place.innerText()), { timeoutMs });
}

/** As by keyboard: the value, and on to the next field. */
export async function put(watched: WatchedPage, path: string, value: string): Promise<void> {
  await watched.page
    .locator('details')
    .evaluateAll((all) =>
      all.forEach((one) =>
        (one as unknown as { setAttribute(name: string, value: string): void }).setAttribute('open', ''),
      ),
    );
  await field(watched, path).fill(value);
  await field(watched, path).press('Tab');
}

export function verdict({ page }: WatchedPage, kind: string): Promise<void> {
  return page.locator(`#settings-verdict [data-verdict="${kind}"]`).waitFor({ timeout: 10_000 });
}

export async function applied({ page }: WatchedPage): Promise<void> {
  await press(page.locator('button.primary'));
  await page.locator('#settings-outcome .outcome[data-tone="good"]').first().waitFor({ timeout: 10_000 });
}
