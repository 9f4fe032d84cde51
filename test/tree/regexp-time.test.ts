/**
 * No pattern that meets input holds the event loop up: half a second for 1 MiB at most, in the worst texts
 * that its own parts make.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findPatterns } from '../support/regexp/find-patterns.ts';
import { LONGEST_MS, worstHoldUp } from '../support/regexp/blocking-time.ts';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const BUILT = `${PROJECT}dist/`;
const ROOMS = ['core', 'plugins'];

/** Made of names that the program itself gives, or asked for 100 ms at the most. */
const MADE = [
  'plugins/mount/outage/tcp-connections.js',
  'plugins/mount/layer/upper/overlay-attributes.js',
  'core/plugins/runner/carried/timed-patterns.js',
  'plugins/mount/rclone/kept-names.js',
  'plugins/webdav/proxy/requests/unkept-names.js',
];

/** What this project's own patterns were, or nearly were: the search must find every one of them. */
const QUADRATIC: readonly (readonly [source: string, flags: string])[] = [
  ['\\/+$', ''],
  ['^-+|-+$', 'g'],
  ['%.*$', ''],
  ['([a-z0-9_.-]+)\\s*=', 'gi'],
  ['no such host|lookup .* on ', 'i'],
  ['<(?:\\w+:)?getetag[^>]*>([^<]+)<', ''],
  ['(?:file:\\/\\/)?(\\/[^()]+?):(\\d+)(?::\\d+)?\\)?$', ''],
  ['^(\\d{4}) ERROR\\s*: (.+): failed to upload try #\\d+, will retry in [^:]+: (.*)$', ''],
  ['^(a+)+$', ''],
];

/** Enough to tell, and what is linear stays below it in most texts: 150 ms for 1 MiB. */
const FOUND = { ms: 37.5, bytes: 262_144 };
/** What is quadratic takes 16 times that for 1 MiB, which is below the limit. */
const HARMLESS = { ms: 25, bytes: 262_144 };

describe('patterns', () => {
  it('are found to be quadratic where they are', () => {
    for (const [source, flags] of QUADRATIC)
      assert.ok(worstHoldUp(source, flags, FOUND).ms > FOUND.ms, `/${source}/${flags}`);
  });

  it('are none of them that, of the daemon and of its plugins', async (t) => {
    const { patterns, made } = await findPatterns(ROOMS, { built: BUILT, sources: PROJECT });
    assert.ok(patterns.length > 200, `only ${patterns.length} were found`);
    assert.deepEqual(
      made.filter((place) => !MADE.some((file) => place.startsWith(file))),
      [],
      'made of a text at run time',
    );
    const once = new Map(patterns.map((one) => [`/${one.source}/${one.flags}`, one]));
    const begun = performance.now();
    let slowest = 0;
    for (const [written, { source, flags, place }] of once) {
      await setImmediate();
      const short = worstHoldUp(source, flags, HARMLESS);
      const { ms, text } =
        short.ms > HARMLESS.ms ? worstHoldUp(source, flags) : { ...short, ms: 4 * short.ms };
      assert.ok(ms <= LONGEST_MS, `${place}: ${written} takes ${Math.round(ms)} ms for 1 MiB of ${text}`);
      slowest = Math.max(slowest, ms);
    }
    t.diagnostic(
      `${once.size} patterns in ${Math.round(performance.now() - begun)} ms, the slowest in ${Math.round(slowest)} ms`,
    );
  });
});
