/** Tabs as the dashboard gets them: what draws them, and what their actions do, is measured as the plugin's. */
import type { Tab } from '../contract/dashboard.ts';
import type { Place, StallWatch } from './stall-watch.ts';

type AnyFn = (this: unknown, ...args: unknown[]) => unknown;
type PlaceOf = (at: string) => Place;

/** The dashboard knows a tab by its object. */
const made = new WeakMap<Tab, Tab>();

/** The same one for the same tab. One of a class stays as it is: it may have fields of its own. */
export function watchedTab(tab: Tab, placeOf: PlaceOf, stalls: StallWatch): Tab {
  if (Object.getPrototypeOf(tab) !== Object.prototype) return tab;
  const watched = made.get(tab) ?? watchedCopy(tab, placeOf, stalls);
  made.set(tab, watched);
  return watched;
}

function watchedCopy(tab: Tab, placeOf: PlaceOf, stalls: StallWatch): Tab {
  const watch = (fn: unknown, what: string): AnyFn => {
    const place = placeOf(`tab ${tab.id}${what}`);
    return function watched(this: unknown, ...args) {
      return stalls.call(place, () => (fn as AnyFn).apply(this, args));
    };
  };
  const all = (table: object, what: string): object =>
    Object.fromEntries(
      Object.entries(table).map(([name, fn]) => [name, watch(fn, `, ${what} ${name}`)] as const),
    );
  const { render, parts, actions } = tab;
  const fields: Record<string, PropertyDescriptor> = Object.getOwnPropertyDescriptors(tab);
  const own: Readonly<Record<string, unknown>> = {
    render: watch(render, ''),
    ...(parts && { parts: all(parts, 'part') }),
    ...(actions && { actions: all(actions, 'action') }),
  };
  for (const [name, value] of Object.entries(own)) fields[name] = { ...fields[name], value };
  return Object.create(Object.prototype, fields) as Tab;
}
