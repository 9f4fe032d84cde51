/** Somebody without a mouse: goes on by the Tab key, and sees where they are. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

/** More stops than any page has. */
const MOST_STOPS = 1_500;

/** The link past the navigation. */
const FIRST = 0;

/** Notes everything that the Tab key should reach; of a group of radio buttons it reaches one. */
const PREPARE = `(() => {
  const seen = new Set();
  window.tabStops = [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex]'
  )].filter((one) => {
    if (one.matches(':disabled, [type=hidden], [tabindex="-1"]') || !one.checkVisibility({ visibilityProperty: true }))
      return false;
    if (!one.matches('[type=radio]')) return true;
    const group = one.name;
    return !seen.has(group) && seen.add(group);
  });
  window.stopsReached = new Set();
})()`;

/** Undefined at the end of the page. */
const LOOK = `(() => {
  const one = document.activeElement;
  if (!one || one === document.body) return undefined;
  const at = window.tabStops.findIndex((stop) =>
    stop === one || (one.matches('[type=radio]') && stop.name === one.name));
  window.stopsReached.add(at);
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const { left, top, width, height } = one.getBoundingClientRect();
  const x = Math.max(left, Math.min(left + width / 2, innerWidth - 1));
  // Of what is taller than the window its beginning may be above it.
  const y = Math.max(1, Math.min(top + Math.min(height / 2, 10), innerHeight - 1));
  const hit = document.elementFromPoint(x, y);
  return {
    at,
    name: one.outerHTML.slice(0, 120),
    hasRing: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
    isSeen: hit !== null && [one, ...(one.labels ?? [])].some((part) => part.contains(hit) || hit.contains(part)),
  };
})()`;

const MISSED = `window.tabStops
  .filter((one, at) => one.isConnected && !window.stopsReached.has(at))
  .map((one) => one.outerHTML.slice(0, 120))`;

interface Stop {
  readonly at: number;
  readonly name: string;
  readonly hasRing: boolean;
  readonly isSeen: boolean;
}

/**
 * From the beginning of a page that was just opened to its end: throws an AssertionError that names what is not
 * reached, reached without a sign of it, covered by something, or out of the order in which it is read.
 */
export async function assertWalkable(page: Page, what: string): Promise<void> {
  await page.evaluate(PREPARE);
  const faults: string[] = [];
  let before = -1;
  let count = 0;
  for (; count < MOST_STOPS; count += 1) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate<Stop | undefined>(LOOK);
    // Behind the end of a page the browser may begin anew.
    if (!stop || (stop.at === FIRST && count > 0)) break;
    if (!stop.hasRing) faults.push(`without a ring: ${stop.name}`);
    if (!stop.isSeen) faults.push(`out of sight: ${stop.name}`);
    // Drawn since: its place is not known.
    if (stop.at !== -1 && stop.at < before) faults.push(`out of order: ${stop.name}`);
    before = Math.max(before, stop.at);
  }
  assert.ok(count > 1 && count < MOST_STOPS, `${what}: ${count} stops`);
  const missed = await page.evaluate<readonly string[]>(MISSED);
  assert.deepEqual([...faults, ...missed.map((one) => `not reached: ${one}`)], [], what);
}

/** Puts the focus on the stop before the target, or leaves it where there is none. */
function standBefore(target: Locator): Promise<void> {
  return target.evaluate((one) => {
    const { tabStops } = globalThis as unknown as { readonly tabStops: readonly (typeof one)[] };
    const at = tabStops.findIndex((stop) => one.contains(stop));
    tabStops[at - 1]?.focus();
  });
}

/**
 * Goes to it by the Tab key, from the stop before it: a walk from where the focus is takes two questions to the
 * browser a stop, and a form has hundreds. That the whole way can be walked is what `assertWalkable` says.
 */
export async function goTo(target: Locator): Promise<void> {
  if (await hasFocus(target)) return;
  const page = target.page();
  await page.evaluate(PREPARE);
  await standBefore(target);
  for (let count = 0; !(await hasFocus(target)); count += 1) {
    assert.ok(count < MOST_STOPS, `${String(target)} is not reached`);
    await page.keyboard.press('Tab');
  }
}

/** Goes to it, and presses the key there. */
export async function press(target: Locator, key = 'Enter'): Promise<void> {
  await goTo(target);
  await target.page().keyboard.press(key);
}

/** Goes to a field, and writes over what it holds. */
export async function write(target: Locator, text: string): Promise<void> {
  const { keyboard } = target.page();
  await goTo(target);
  await keyboard.press('Control+A');
  await keyboard.type(text);
}

/** Also where something inside has it. */
export function hasFocus(target: Locator): Promise<boolean> {
  return target.evaluate((one) => one.contains(one.ownerDocument.activeElement), undefined, {
    timeout: 5_000,
  });
}
