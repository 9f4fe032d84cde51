import type { IncomingHttpHeaders } from 'node:http';
import type { Found } from './stat.ts';

/** Whether a condition of the client on the existing file does not hold. The backends ignore all of them. */
export function preconditionFails(headers: IncomingHttpHeaders, found: Found | undefined): boolean {
  const match = headers['if-match'];
  if (match !== undefined && !matches(match, found)) return true;
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined && matches(noneMatch, found)) return true;
  const since = Date.parse(headers['if-unmodified-since'] ?? '');
  return match === undefined && !Number.isNaN(since) && found !== undefined && found.modifiedMs > since;
}

function matches(list: string, found: Found | undefined): boolean {
  if (!found) return false;
  if (list.trim() === '*') return true;
  return [...list.matchAll(/(?:W\/)?"[^"]*"/g)].some(
    ([tag]) => tag.replace(/^W\//, '') === found.etag?.replace(/^W\//, ''),
  );
}
