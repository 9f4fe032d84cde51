/**
 * Output of a subcommand: lines, aligned tables, and progress that is redrawn on a terminal and printed
 * line by line elsewhere.
 */
import type { CliContext } from '../contract/cli.ts';
import { displayWidth, wrap } from './wrap.ts';

const PLAIN_PROGRESS_EVERY_MS = 1_000;

export interface TerminalOptions {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly now: () => number;
}

const USUAL_COLUMNS = 80;
/**
 * A last column narrower than this is easier to read when the line runs over the edge than when it is
 * wrapped.
 */
const LEAST_LAST_COLUMN = 24;

export interface Terminal extends Pick<
  CliContext,
  'isTerminal' | 'print' | 'printError' | 'progress' | 'table'
> {
  readonly columns: number;
}

export function createTerminal(options: TerminalOptions): Terminal {
  const { stdout, stderr } = options;
  const isTerminal = stdout.isTTY === true;
  let isProgressShown = false;
  let printedAt = -Infinity;
  let printed = '';
  const endProgress = (): void => {
    if (isProgressShown) stderr.write('\n');
    isProgressShown = false;
  };
  return {
    isTerminal,
    columns: isTerminal && stdout.columns > 0 ? stdout.columns : USUAL_COLUMNS,
    print(text) {
      endProgress();
      stdout.write(`${isTerminal ? harmless(text) : text}\n`);
    },
    printError(text) {
      endProgress();
      stderr.write(`${stderr.isTTY ? harmless(text) : text}\n`);
    },
    progress(text) {
      if (stderr.isTTY) {
        stderr.write(`\r\x1b[K${fitting(text, stderr.columns)}`);
        isProgressShown = true;
      } else if (text !== printed && options.now() - printedAt >= PLAIN_PROGRESS_EVERY_MS) {
        printedAt = options.now();
        printed = text;
        stderr.write(`${text}\n`);
      }
    },
    table(rows) {
      endProgress();
      stdout.write(`${formatTable(rows, isTerminal ? stdout.columns : Infinity)}\n`);
    },
  };
}

/**
 * Columns are two spaces apart; wide (East Asian) characters count double, and a cell is always one line.
 * Only the last column is wrapped when lines would be longer than `columns`.
 */
export function formatTable(rows: readonly (readonly string[])[], columns = Infinity): string {
  const lines = rows.map((row) => row.map((cell) => cell.replaceAll(CONTROL, ' ')));
  const widths: number[] = [];
  for (const row of lines)
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, displayWidth(cell))));
  const last = widths.length - 1;
  const before = widths.slice(0, last).reduce((sum, width) => sum + width + GAP, 0);
  const room = columns - before;
  return lines
    .map((row) => {
      const cells =
        room < LEAST_LAST_COLUMN
          ? row
          : row.map((cell, index) =>
              index === last ? wrap(cell, room).join(`\n${' '.repeat(before)}`) : cell,
            );
      return cells
        .map((cell, index) => (index === last ? cell : pad(cell, widths[index] ?? 0)))
        .join(' '.repeat(GAP))
        .trimEnd();
    })
    .join('\n');
}

const GAP = 2;

function pad(cell: string, width: number): string {
  return cell + ' '.repeat(Math.max(0, width - displayWidth(cell)));
}

const CONTROL = /\p{Cc}/gu;
const CONTROL_BUT_LINES = /(?![\n\t])\p{Cc}/gu;

/** File names come from other people: control characters in them must not reach the terminal. */
function harmless(text: string): string {
  return text.replaceAll(CONTROL_BUT_LINES, '\ufffd');
}

/** Cut to one line of the terminal, because a longer one could not be redrawn in place. */
function fitting(text: string, columns = 80): string {
  let width = 0;
  const characters = [...text.replaceAll(CONTROL, ' ')];
  const end = characters.findIndex((character) => (width += displayWidth(character)) >= columns);
  return end === -1 ? characters.join('') : characters.slice(0, end).join('');
}
