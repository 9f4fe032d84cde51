import type { Found } from '../requests/stat.ts';
import { wantedTime } from '../requests/times.ts';
import type { LeftUpload } from './journal.ts';

/** File times have whole seconds. */
const SLACK_MS = 1_000;

/**
 * Whether the upload may have been the last to write the existing file, by its time and length: a file that somebody
 * has written since, or that is longer than what was sent, is left alone. Backends give half a file, too, the time
 * that its client wants: others may have put a file of that time there, but not so short a one. What others have put
 * there while it ran, only the content tells.
 */
export function isTornBy(
  { begunMs, seenMs, headers, kind, passedBytes }: LeftUpload,
  { isFolder, modifiedMs, bytes }: Pick<Found, 'isFolder' | 'modifiedMs' | 'bytes'>,
): boolean {
  const isOfThen = modifiedMs >= begunMs - SLACK_MS && modifiedMs <= seenMs + SLACK_MS;
  const isBounded = passedBytes !== undefined || kind === 'whole';
  const isOfWanted = isBounded && modifiedMs === Number(wantedTime(headers)) * 1_000;
  return !isFolder && bytes <= (passedBytes ?? Infinity) && (isOfThen || isOfWanted);
}

/** An empty file that was empty before: to empty it would only take what others put there this moment. */
export function isAsItWas({ kind }: Pick<LeftUpload, 'kind'>, { bytes }: Pick<Found, 'bytes'>): boolean {
  return kind === 'empty' && bytes === 0;
}

/**
 * Whether nothing is missing from it, whoever put it there: the same file may have been sent over SMB, too. After a
 * power cut a file may have its length, and not its content.
 */
export function isWholeBy(
  { size = Infinity }: LeftUpload,
  { bytes }: Pick<Found, 'bytes'>,
  isOfFormerBoot: boolean,
): boolean {
  return isOfFormerBoot ? bytes > size : bytes >= size;
}
