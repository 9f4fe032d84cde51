/** What a subcommand prints: lines, aligned tables, and progress that is redrawn on a terminal and listed elsewhere. */
import type { CliContext } from '../api.ts';

const PLAIN_PROGRESS_EVERY_MS = 1_000;

export interface TerminalOptions {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly now: () => number;
}

export type Terminal = Pick<CliContext, 'isTerminal' | 'print' | 'printError' | 'progress' | 'table'>;

export function createTerminal(options: TerminalOptions): Terminal {
  const { stdout, stderr } = options;
  const isTerminal = stdout.isTTY === true;
  let isProgressShown = false;
  let printedAt = -Infinity;
  const endProgress = (): void => {
    if (isProgressShown) stderr.write('\n');
    isProgressShown = false;
  };
  return {
    isTerminal,
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
      } else if (options.now() - printedAt >= PLAIN_PROGRESS_EVERY_MS) {
        printedAt = options.now();
        stderr.write(`${text}\n`);
      }
    },
    table(rows) {
      endProgress();
      stdout.write(`${formatTable(rows)}\n`);
    },
  };
}

/** Columns two spaces apart; wide (East Asian) characters count double, and a cell is one line whatever it holds. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((row) => row.map((cell) => cell.replaceAll(CONTROL, ' ')));
  const widths: number[] = [];
  for (const row of lines) row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, displayWidth(cell))));
  return lines.map((row) => row.map((cell, index) => pad(cell, widths[index] ?? 0)).join('  ').trimEnd()).join('\n');
}

function pad(cell: string, width: number): string {
  return cell + ' '.repeat(Math.max(0, width - displayWidth(cell)));
}

const CONTROL = /\p{Cc}/gu;
const CONTROL_BUT_LINES = /(?![\n\t])\p{Cc}/gu;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** File names come from strangers: what they hold must not steer the terminal. */
function harmless(text: string): string {
  return text.replaceAll(CONTROL_BUT_LINES, '\ufffd');
}

/** One line of the terminal: a longer one could not be redrawn in place. */
function fitting(text: string, columns = 80): string {
  let width = 0;
  const characters = [...text.replaceAll(CONTROL, ' ')];
  const end = characters.findIndex((character) => (width += displayWidth(character)) >= columns);
  return end === -1 ? characters.join('') : characters.slice(0, end).join('');
}

export function displayWidth(text: string): number {
  return [...text].reduce((sum, character) => sum + (NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1), 0);
}
