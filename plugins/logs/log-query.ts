/** The query of GET /api/logs: which lines are wanted. */
import type { LineRequest } from './line-reader.ts';

export interface LogQuery {
  readonly lines: number;
  readonly fromLine: number;
}

export const DEFAULT_LINES = 200;

function integer(name: string, value: unknown, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (typeof value === 'string' && /^\d{1,15}$/.test(value)) return Number(value);
  throw new Error(`"${name}" must be a whole number from 0 to 999999999999999`);
}

/** Throws a sentence. */
export function parseLogQuery(query: Readonly<Record<string, unknown>>): LogQuery {
  return {
    lines: integer('lines', query['lines'], DEFAULT_LINES),
    fromLine: integer('from_line', query['from_line'], 0),
  };
}

/** 0 asks for the last lines, any other number for the lines after it. */
export function chooseLines({ lines, fromLine }: LogQuery): (total: number) => LineRequest {
  return (total) => ({ skip: fromLine === 0 ? Math.max(total - lines, 0) : fromLine, count: lines });
}
