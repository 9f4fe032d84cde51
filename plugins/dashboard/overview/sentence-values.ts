/** What changes in the main sentence at each cycle while files are on their way: how many, how old, and whose. */
import type { View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';
import { signed } from '../client/signs.ts';
import type { Sentence } from './sentence.ts';

/** Shares that the sentence names; a longer list is not read. */
export const MOST_NAMES = 8;

export function amountOf(count: number, bytes: number | undefined, view: View): string {
  return bytes === undefined || count === 0
    ? view.plain('files', { count })
    : view.plain('files-bytes', { count, bytes: view.bytes(bytes) });
}

/** Every other sentence is rare, and drawn as a whole. */
export function isLive({ key }: Sentence): boolean {
  return key === 'unsaved';
}

export function sentenceValues({ files, bytes, oldestAt, shares }: Sentence, view: View): Values {
  const values: Record<string, string> = {
    amount: amountOf(files, bytes, view),
  };
  for (let at = 0; at < MOST_NAMES; at += 1) {
    const name = shares[at];
    values[`comma${at}`] = at === 0 || name === undefined ? '' : view.plain('list-comma');
    values[`name${at}`] = signed(name ?? '');
  }
  const count = shares.length - MOST_NAMES;
  values['more'] = count > 0 ? ` ${view.plain('and-more', { count })}` : '';
  if (oldestAt !== undefined) values['oldest@data-at'] = String(oldestAt);
  return values;
}

/** Equal where the sentences differ in their live values at most. */
export function sentenceShape(sentence: Sentence): string {
  if (!isLive(sentence)) return JSON.stringify(sentence);
  const { oldestAt, shares } = sentence;
  const live = {
    files: 0,
    bytes: 0,
    oldestAt: oldestAt !== undefined,
    shares: shares.length > 0,
  };
  return JSON.stringify({ ...sentence, ...live });
}
