/** Where somebody is led back to: paths of this server alone. */
const LONGEST = 2_048;
/** ASCII that can be seen, as browsers send paths; `//host` and `/\host` would lead elsewhere. */
const OWN_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** The path with its query, if it is one of this server; else `/`. */
export function safeBack(back: unknown): string {
  return typeof back === 'string' && back.length <= LONGEST && OWN_PATH.test(back) ? back : '/';
}

/** The path and query of an address, such as `Referer` holds one, as `safeBack`. */
export function pathOf(address: unknown): string {
  if (typeof address !== 'string' || !URL.canParse(address)) return '/';
  const { pathname, search } = new URL(address);
  return safeBack(`${pathname}${search}`);
}
