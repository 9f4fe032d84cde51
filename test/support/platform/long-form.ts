/** `npm test` runs the short form of each test; `npm run torture` the long one of those that have `// @long`. */
const isLong = process.env['MOUNTKEEPER_TEST_LONG'] === '1';

export const inForm = <Value>({ short, long }: { readonly short: Value; readonly long: Value }): Value =>
  isLong ? long : short;
