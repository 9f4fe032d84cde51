/**
 * Cron expressions of five fields: what is wrong with one, and its next time. Standard cron only: no
 * nicknames (`@daily`), no `L`, `W`, `#` or `?`. When day and weekday are both given, either one matches.
 */
import { Cron } from 'croner';

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly words: readonly string[];
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'weekday', min: 0, max: 7, words: WEEKDAYS },
];
/** Long enough to list every minute of an hour. */
const LONGEST = 256;
const ITEM = /^(?:\*|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/;

/** A sentence that says what is wrong with the expression or the time zone; undefined when nothing is. */
export function cronProblem(expression: string, timezone?: string): string | undefined {
  const isLong = [expression, timezone].some((text) => text !== undefined && text.length > LONGEST);
  return isLong
    ? `a schedule and its time zone have ${LONGEST} characters each at most`
    : fieldsProblem(expression, timezone);
}

function fieldsProblem(expression: string, timezone: string | undefined): string | undefined {
  const parts = expression.trim().split(/\s+/);
  if (expression.trim().startsWith('@'))
    return (
      `"${expression.trim()}" is a nickname; write five fields instead, such as "0 3 * * *" for ` +
      'every day at 03:00'
    );
  const count = expression.trim() === '' ? 0 : parts.length;
  if (count !== FIELDS.length)
    return `a schedule has five fields (minute hour day month weekday), but "${expression}" has ${count}`;
  for (const [index, field] of FIELDS.entries()) {
    const problem = fieldProblem(parts[index] ?? '', field);
    if (problem !== undefined) return problem;
  }
  return zoneProblem(timezone) ?? occurrenceProblem(expression, timezone);
}

/** The next time after `afterMs`, in milliseconds since the epoch; undefined when there is none. */
export function nextCronTime(
  expression: string,
  timezone: string | undefined,
  afterMs: number,
): number | undefined {
  const cron = new Cron(expression.trim(), {
    mode: '5-part',
    ...(timezone === undefined || timezone === '' ? {} : { timezone }),
  });
  return cron.nextRun(new Date(afterMs))?.getTime();
}

function fieldProblem(part: string, field: Field): string | undefined {
  for (const item of part.split(',')) {
    const problem = itemProblem(item, field);
    if (problem !== undefined) return `${field.name} "${part}": ${problem}`;
  }
  return undefined;
}

function itemProblem(item: string, field: Field): string | undefined {
  const match = ITEM.exec(item);
  if (match === null)
    return `"${item}" is not understood; use *, numbers, lists (1,15), ranges (1-5) and steps (*/10)`;
  const [, from, to, step] = match;
  const isSingle = from !== undefined && to === undefined;
  if (step !== undefined && isSingle)
    return `a step needs a range or *, such as ${from}-${field.max}/${step}`;
  if (step !== undefined && !isWithin(Number(step), 1, field.max))
    return `the step must be from 1 to ${field.max}`;
  return valueProblem(from, field) ?? valueProblem(to, field) ?? orderProblem(from, to, field);
}

function orderProblem(from: string | undefined, to: string | undefined, field: Field): string | undefined {
  if (from === undefined || to === undefined) return undefined;
  // A range of weekdays may end on Sunday, as day 7.
  const end = to.toUpperCase() === 'SUN' ? 7 : numberOf(to, field);
  return numberOf(from, field) > end ? `the range ${from}-${to} runs backwards` : undefined;
}

function isWithin(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}

function valueProblem(value: string | undefined, field: Field): string | undefined {
  if (value === undefined) return undefined;
  const number = numberOf(value, field);
  if (Number.isNaN(number)) return `"${value}" is not a ${field.name}`;
  return isWithin(number, field.min, field.max)
    ? undefined
    : `${value} is not between ${field.min} and ${field.max}`;
}

function numberOf(value: string, field: Field): number {
  if (/^\d+$/.test(value)) return Number(value);
  const index = field.words.indexOf(value.toUpperCase());
  return index < 0 ? Number.NaN : index + field.min;
}

function zoneProblem(timezone: string | undefined): string | undefined {
  if (timezone === undefined || timezone === '') return undefined;
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
    return undefined;
  } catch {
    // The one thing that Intl throws for here.
    return `the time zone "${timezone}" is not known; use a name such as "Europe/Berlin"`;
  }
}

function occurrenceProblem(expression: string, timezone: string | undefined): string | undefined {
  try {
    // Any start will do: a date that exists at all comes within the years that the library searches.
    return nextCronTime(expression, timezone, 0) === undefined
      ? `"${expression}" never comes: there is no such date`
      : undefined;
  } catch (error) {
    return (error as Error).message.replace(/^CronPattern: /, '');
  }
}
