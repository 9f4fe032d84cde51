/** Names of second versions: `name (conflict 2026-11-22 14-05, host).ext`. */
import { below, nameOf, parentOf } from '../compare/paths.ts';

export interface ConflictNaming {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly host: string;
}

/** `again` counts the attempts to find a free name, from 0. */
export function conflictPath(path: string, { now, host }: ConflictNaming, again: number): string {
  const name = nameOf(path);
  const dot = name.lastIndexOf('.');
  const stem = dot > 0 ? name.slice(0, dot) : name;
  const extension = dot > 0 ? name.slice(dot) : '';
  const at = new Date(now);
  const day =
    `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` +
    `${two(at.getHours())}-${two(at.getMinutes())}`;
  const count = again === 0 ? '' : ` ${again + 1}`;
  return below(parentOf(path), `${stem} (conflict ${day}, ${host}${count})${extension}`);
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
