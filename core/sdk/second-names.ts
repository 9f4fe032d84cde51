/** Names of second versions, beside the first: `name (conflict 2026-11-22 14-05, host).ext`. */

export interface ConflictNaming {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly host: string;
}

/** Most file systems take no longer name, in bytes (NAME_MAX of Linux). */
const NAME_BYTES = 255;
/** What follows a name's last dot is taken for an extension up to here, in bytes. */
const EXTENSION_BYTES = 32;

/** A path in the same folder. `again` counts the attempts to find a free name, from 0. */
export function conflictPath(path: string, { now, host }: ConflictNaming, again: number): string {
  const at = new Date(now);
  const day =
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}-${two(at.getMinutes())}`;
  return secondPath(path, `conflict ${day}, ${host}`, again);
}

/**
 * `folder/name.ext` → `folder/name (mark).ext`, with a number behind the mark from the second attempt on. The name is
 * cut where it would be longer than file systems take.
 */
export function secondPath(path: string, mark: string, again: number): string {
  const from = path.lastIndexOf('/') + 1;
  const name = path.slice(from);
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && Buffer.byteLength(name.slice(dot)) <= EXTENSION_BYTES ? name.slice(dot) : '';
  const end = ` (${mark}${again === 0 ? '' : ` ${again + 1}`})${extension}`;
  const stem = name.slice(0, name.length - extension.length);
  return `${path.slice(0, from)}${cut(stem, NAME_BYTES - Buffer.byteLength(end))}${end}`;
}

/** Whole characters. */
function cut(text: string, bytes: number): string {
  let [kept, left] = ['', bytes];
  for (const character of text) {
    left -= Buffer.byteLength(character);
    if (left < 0) break;
    kept += character;
  }
  return kept;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
