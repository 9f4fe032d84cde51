/** The command line on a terminal of its own, as a person sees and types it. */
import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until, within } from '../platform/wait.ts';
import { MAIN } from './daemon.ts';

export class TypedSession {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly ended: Promise<unknown>;
  private text = '';
  /** Where the part begins that was not waited for yet. */
  private seen = 0;

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.child = child;
    this.ended = once(child, 'close');
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => (this.text += piece.toString()));
  }

  /** util-linux's `script` gives it the terminal. Ended with the scratch folder. */
  static start(scratch: Scratch, args: readonly string[]): TypedSession {
    const words = [process.execPath, MAIN, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
    const child = spawn('script', ['-qefc', words.join(' '), '/dev/null'], {
      env: {
        PATH: process.env['PATH'],
        HOME: '/nonexistent',
        LANG: 'C.UTF-8',
        TERM: 'dumb',
        SHELL: '/bin/sh',
      },
    });
    scratch.defer(() => void child.kill('SIGKILL'));
    return new TypedSession(child);
  }

  /** All that was shown. */
  get shown(): string {
    return this.text;
  }

  /** Waits until the text is shown, after what was waited for before. Resolves with what came up to it. */
  async sees(what: RegExp, timeoutMs = 30_000): Promise<string> {
    const found = await until(
      `${what.source} in:\n${this.text.slice(-1_000)}`,
      () => what.exec(this.text.slice(this.seen)),
      { timeoutMs },
    ).catch((cause: unknown) => {
      throw new Error(`not shown: ${what.source}; shown: ${this.text.slice(-1_500)}`, { cause });
    });
    const passed = this.text.slice(this.seen, this.seen + found.index + found[0].length);
    this.seen += passed.length;
    return passed;
  }

  /** Types after the question is shown, and presses Enter. */
  async answers(question: RegExp, answer: string): Promise<void> {
    await this.sees(question);
    this.child.stdin.write(`${answer}\r`);
  }

  /** Presses keys as they are. */
  presses(keys: string): void {
    this.child.stdin.write(keys);
  }

  /** Resolves with the exit code. */
  async ends(timeoutMs = 30_000): Promise<number | null> {
    await within('the end of the command', timeoutMs, this.ended);
    return this.child.exitCode;
  }
}
