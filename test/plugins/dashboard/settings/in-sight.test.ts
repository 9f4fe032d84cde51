/** Small windows: what a change would do stays in sight, and covers nothing that has the focus. In real Chromium. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { SKIPS } from '../../../runner/skips.ts';
import { PROJECT } from '../../../runner/test-files.ts';
import { hasBrowser, openBrowser } from '../../../support/dashboard/chromium.ts';
import { assertWalkable } from '../../../support/dashboard/keyboard.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

const STYLE = readFileSync(join(PROJECT, 'plugins/dashboard/assets/style.css'), 'utf8');
const FIELDS = Array.from({ length: 60 }, (_, at) => `<p><input aria-label="${at}"></p>`).join('');
const LINES = Array.from({ length: 40 }, (_, at) => `<p>${at}</p>`).join('');
const BODY = `<!doctype html><style>${STYLE}</style><main><a href="#x">first</a><div class="settings">
  <section class="fields">${FIELDS}</section><div class="side"><textarea rows="24"></textarea>
  <section class="bar"><output id="settings-outcome"></output><div id="settings-verdict">${LINES}<button>Apply</button>
  </div></section></div></div></main>`;

describe('what a change would do', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  for (const [width, height] of [
    [360, 800],
    [360, 400],
  ] as const)
    it(`covers no field that somebody goes to by keyboard, at ${width} x ${height}`, async () => {
      const scratch = await createScratch('in-sight');
      try {
        const page = await (await openBrowser(scratch)).newPage({ viewport: { width, height } });
        await page.setContent(BODY);
        await assertWalkable(page, 'the settings');
      } finally {
        await scratch.close();
      }
    });
});
