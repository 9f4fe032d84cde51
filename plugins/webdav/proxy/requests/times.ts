import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

const SECONDS = /^(\d{1,11})(?:\.\d{1,9})?$/;

/**
 * The modification time that a client sets for its file, in whole seconds since the epoch: backends overlook what
 * has a fraction.
 */
export function wantedTime(headers: IncomingHttpHeaders): string | undefined {
  const wanted = headers['x-oc-mtime'] ?? headers['oc-mtime'];
  return typeof wanted === 'string' ? SECONDS.exec(wanted)?.[1] : undefined;
}

/** Confirms the modification time that the client wants, and that the backend was told with the file. */
export function timed(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return wantedTime(headers) === undefined ? {} : { 'x-oc-mtime': 'accepted' };
}
