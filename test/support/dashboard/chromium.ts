/** Real Chromium for tests: headless, with a profile of its own, and deaf to everything but loopback. */
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { existsSync } from 'node:fs';
import type { Scratch } from '../platform/scratch-folder.ts';

/** Where Debian puts it. */
const CHROMIUM = '/usr/bin/chromium';

/** False where Debian's Chromium is not installed. */
export const hasBrowser = existsSync(CHROMIUM);

export interface BrowserTraits {
  /** Host names that lead to 127.0.0.1, as an attacker's DNS would have them. */
  readonly names?: readonly string[];
}

/** Ended with the scratch folder, in which its profile lies. */
export async function openBrowser(scratch: Scratch, { names = [] }: BrowserTraits = {}): Promise<Browser> {
  const rules = [
    ...names.map((name) => `MAP ${name} 127.0.0.1`),
    'MAP * ~NOTFOUND',
    'EXCLUDE 127.0.0.1',
    'EXCLUDE localhost',
  ];
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    // Root has no other way, and its own updates would look for the internet.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--host-resolver-rules=${rules.join(', ')}`,
    ],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: scratch.path('browser'),
      LANG: 'C.UTF-8',
      TMPDIR: scratch.root,
    },
  });
  scratch.defer(() => browser.close());
  return browser;
}
