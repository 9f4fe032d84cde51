/** Where an error comes from, for whoever mends the plugin. */
import { stackOf } from '../../../platform/log/thrown.ts';
import { placeIn } from '../../blame.ts';

/** The first place outside Node, as ` (/x/y.js:1:2)`. */
export function placeOf(error: unknown): string {
  const place = stackOf(error)
    .split('\n')
    .filter((line) => /^ {4}at /.test(line) && !line.includes('node:'))
    .map((line) => placeIn(line).replace('file://', '').replace(/\)$/, ''))[0];
  return place?.startsWith('/') === true ? ` (${place})` : '';
}
