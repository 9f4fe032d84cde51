/** What is written down: one object for each line, with nothing in it that is secret. */
import { escapeUnprintable } from 'mountkeeper';
import type { AnsweredRequest, ConfigDiff, LoadedConfig, Requester } from 'mountkeeper';

const LONGEST_CHANGE = 500;

/** Anything but a time, which the file adds. */
export type Entry = Readonly<Record<string, unknown>> & { readonly event: string };

/** Undefined for what needs no line: a question that was answered. */
export function entryOfRequest(request: AnsweredRequest): Entry | undefined {
  const { method, route, path, params, about, status, isDone, isQuestion, isRefused } = request;
  if (isQuestion && !isRefused) return undefined;
  return {
    event: isRefused ? 'refused' : 'request',
    ...who(request),
    method,
    ...(route === undefined ? { path } : { route }),
    ...(Object.keys(params).length > 0 && { params }),
    ...(Object.keys(about).length > 0 && { about }),
    ...(status === undefined ? { gone: true } : { status }),
    ...(isRefused ? { credentials: request.hasAuthorization } : { done: isDone }),
  };
}

export function entryOfConfig({ origin, requestedBy }: LoadedConfig, { summary }: ConfigDiff): Entry {
  return {
    event: 'config',
    // A document that was put back is checked like the file, though somebody asked for it over HTTP.
    origin: requestedBy === undefined ? (origin ?? 'file') : 'http',
    ...(requestedBy && who(requestedBy)),
    changes: summary.split('\n').map((line) => line.slice(0, LONGEST_CHANGE)),
  };
}

function who({ id, from, principal }: Requester): Readonly<Record<string, unknown>> {
  return { request: id, ...(principal && { who: principal }), from };
}

/** One line, whatever is in it. */
export function lineOf(at: number, entry: Entry): string {
  return `${escapeUnprintable(JSON.stringify({ time: new Date(at).toISOString(), ...entry }))}\n`;
}
