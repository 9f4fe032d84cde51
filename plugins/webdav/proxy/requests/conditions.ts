import type { IncomingHttpHeaders } from 'node:http';
import type { Found } from './stat.ts';

/**
 * Whether one of the conditions that a client set on what lies there does not hold. The backends look at none
 * of them.
 */
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
