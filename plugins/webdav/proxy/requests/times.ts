import type { IncomingHttpHeaders } from 'node:http';

const SECONDS = /^(\d{1,11})(?:\.\d{1,9})?$/;

/**
 * The modification time that a client sets for its file, in whole seconds since the epoch: backends overlook what
 * has a fraction.
 */
export function wantedTime(headers: IncomingHttpHeaders): string | undefined {
  const wanted = headers['x-oc-mtime'] ?? headers['oc-mtime'];
  return typeof wanted === 'string' ? SECONDS.exec(wanted)?.[1] : undefined;
}
