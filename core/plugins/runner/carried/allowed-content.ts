/**
 * What a plugin in its own process may draw: by allowlists, since its page is one with the daemon's. Nothing of it may
 * read what somebody types elsewhere on the page, stand in the place of something else, or press another's button.
 */

const listed = (names: string): ReadonlySet<string> => new Set(names.split(/\s+/));

const ELEMENTS = listed(
  'a abbr address article aside b bdi bdo blockquote br button caption cite code col colgroup data datalist dd del ' +
    'details div dl dt em fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr i img input ins kbd ' +
    'label legend li mark meter nav ol optgroup option output p pre progress q s samp section select small span ' +
    'strong sub summary sup table tbody td textarea tfoot th thead time tr u ul var wbr ' +
    'svg g path line polyline polygon rect circle ellipse text tspan title desc',
);

/** As they are written: a renderer knows others by which one of these could be meant, such as `htmlFor`. */
const ATTRIBUTES = listed(
  'action alt autocomplete checked class cols colspan data-head data-stale data-tone datetime dir disabled download ' +
    'formaction formmethod formnovalidate height hidden high href label lang loading low max maxlength method min ' +
    'minlength multiple novalidate open optimum pattern placeholder readonly rel required reversed role rows rowspan ' +
    'scope selected size span src start step tabindex title type value width wrap ' +
    'hx-get hx-post hx-confirm ' +
    'cx cy d dx dy fill fill-opacity fill-rule font-size opacity points preserveAspectRatio r rx ry stroke ' +
    'stroke-dasharray stroke-linecap stroke-linejoin stroke-opacity stroke-width text-anchor transform vector-effect ' +
    'viewBox x x1 x2 y y1 y2',
);
/** Elsewhere a name takes the place of a property of the document. */
const NAMED = listed('button fieldset input output select textarea');
/** Their values are ids, which get a prefix: so they lead to the plugin's own elements alone. */
const IDS = listed('id for headers list data-kept');
const ARIA_IDS = listed(
  'aria-activedescendant aria-controls aria-describedby aria-details aria-errormessage aria-flowto ' +
    'aria-labelledby aria-owns',
);

/** Stays within the element, or leads to one of the plugin's own by its id. */
const WITHIN = /^(?:this|find [\w.#[\]='" -]+|#[\w-]+)$/;
const DELAY = /^\d+(?:ms|s|m)$/;
const EVENTS = listed('change click input keyup load revealed submit toggle');
/** A share's panel has been drawn anew. What follows is asked of the plugin itself. */
const OF_PANEL = /^sse:panel-[\w-]+$/;
const SWAPS = listed(
  'innerHTML outerHTML beforebegin afterbegin beforeend afterend delete none morph morph:innerHTML morph:outerHTML',
);
/** Of htmx. */
const OF_HTMX: Readonly<Record<string, (value: string) => boolean>> = {
  'hx-target': (value) => WITHIN.test(value),
  'hx-include': (value) => WITHIN.test(value),
  'hx-indicator': (value) => WITHIN.test(value),
  'hx-disabled-elt': (value) => WITHIN.test(value),
  'hx-trigger': (value) => value.split(',').every((one) => isTrigger(one.trim().split(' '))),
  'hx-swap': (value) => isSwap(value.split(' ')),
  // Without a selector it is the element's own id.
  'hx-swap-oob': (value) => value === 'true' || (SWAPS.has(value) && !value.includes(':')),
  'hx-params': (value) => /^[\w, *-]+$/.test(value),
  // htmx runs what does not begin so.
  'hx-vals': (value) => value.trimStart().startsWith('{'),
};

function isTrigger([event = '', ...more]: readonly string[]): boolean {
  if (event === 'every') return DELAY.test(more[0] ?? '') && more.length === 1;
  const isKnown = EVENTS.has(event) || OF_PANEL.test(event);
  return isKnown && more.every((one) => ['once', 'changed'].includes(one) || isTime(one));
}

function isSwap([way = '', ...more]: readonly string[]): boolean {
  return SWAPS.has(way) && more.every(isTime);
}

function isTime(modifier: string): boolean {
  const [name = '', ms = ''] = modifier.split(':', 2);
  return ['delay', 'settle', 'swap', 'throttle'].includes(name) && DELAY.test(ms);
}

/** The element's name; throws for what may not be drawn. */
export function allowedElement(type: unknown): string {
  if (typeof type === 'string' && ELEMENTS.has(type)) return type;
  throw new Error(`it drew an element that cannot be carried: ${String(type).slice(0, 100)}`);
}

/** An attribute's value as it may stand on the page; undefined for one that is left out. `prefix`: of all its ids. */
export function allowedValue(
  element: string,
  name: string,
  value: string | number | boolean,
  prefix: string,
): string | number | boolean | undefined {
  const text = String(value);
  if (IDS.has(name) || ARIA_IDS.has(name)) return text.replaceAll(/[^\s]+/g, (id) => `${prefix}${id}`);
  if (Object.hasOwn(OF_HTMX, name))
    return OF_HTMX[name]!(text) ? text.replaceAll(/(?<=^|\s)#(?=[\w-])/g, `#${prefix}`) : undefined;
  if (name === 'name') return NAMED.has(element) ? value : undefined;
  return ATTRIBUTES.has(name) || /^aria-[a-z]+$/.test(name) ? value : undefined;
}
