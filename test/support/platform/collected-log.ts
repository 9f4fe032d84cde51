/** A logger whose entries the test reads. */
import { pino } from 'pino';
import type { Logger } from 'pino';
import { loggedError } from '../../../core/platform/log/logged-error.ts';

export interface CollectedLog {
  readonly log: Logger;
  readonly entries: Record<string, unknown>[];
  messages(): string[];
}

/** A logger of the lowest level that keeps what it is given. */
export function collectLog(): CollectedLog {
  const entries: Record<string, unknown>[] = [];
  const log = pino(
    { level: 'trace', base: null, serializers: { err: loggedError } },
    { write: (line: string) => void entries.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, entries, messages: () => entries.map((entry) => String(entry['msg'])) };
}
