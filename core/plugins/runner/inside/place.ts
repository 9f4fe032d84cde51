/** Where an error comes from, for whoever mends the plugin. */
import { stackOf } from '../../../platform/log/thrown.ts';
import { placeIn } from '../../blame.ts';

/**
 * The first place outside Node, as ` (/x/y.js:1:2)`; below `folder` where that is said: a library's frames tell its
 * author nothing.
 */
export function placeOf(error: unknown, folder = ''): string {
  const places = stackOf(error)
    .split('\n')
    .filter((line) => /^ {4}at /.test(line) && !line.includes('node:'))
    .map((line) => placeIn(line).replace('file://', '').replace(/\)$/, ''));
  const place = places.find((one) => folder === '' || one.startsWith(`${folder}/`));
  return place?.startsWith('/') === true ? ` (${place})` : '';
}
