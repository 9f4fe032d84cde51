/** Questions on a terminal. What is typed after a question for a secret is not shown. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';

export interface Prompter {
  /** The answer without outer spaces; `usual` when nothing is typed. Rejects when it is interrupted. */
  ask(question: string, usual: string): Promise<string>;
  /** As typed, spaces included; nothing of it is shown. */
  secret(question: string): Promise<string>;
  confirm(question: string, usual: boolean): Promise<boolean>;
  close(): void;
}

export interface PrompterOptions {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  /** Ends every question. */
  readonly signal: AbortSignal;
}

export const INTERRUPTED = 'interrupted; nothing was changed';

export function createPrompter({ input, output, signal }: PrompterOptions): Prompter {
  let isSilent = false;
  const shown = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isSilent) output.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input, output: shown, terminal: true, historySize: 0 });
  const over = new AbortController();
  const end = (): void => over.abort(new Error(INTERRUPTED));
  // Ctrl-C and Ctrl-D, and the end of a terminal that goes away.
  lines.on('SIGINT', end);
  lines.on('close', end);
  signal.addEventListener('abort', end, { once: true });
  const question = async (text: string): Promise<string> => {
    try {
      return await lines.question(text, { signal: over.signal });
    } catch (cause) {
      output.write('\n');
      throw new Error(INTERRUPTED, { cause });
    }
  };
  return {
    async ask(text, usual) {
      const answer = (await question(`${text}${usual === '' ? '' : ` [${harmless(usual)}]`}: `)).trim();
      return answer === '' ? usual : answer;
    },
    async secret(text) {
      output.write(`${text}: `);
      isSilent = true;
      try {
        const answer = await question('');
        output.write('\n');
        return answer;
      } finally {
        isSilent = false;
      }
    },
    async confirm(text, usual) {
      for (;;) {
        const answer = (await question(`${text} [${usual ? 'Y/n' : 'y/N'}]: `)).trim().toLowerCase();
        if (answer === '') return usual;
        if (['y', 'yes', 'n', 'no'].includes(answer)) return answer.startsWith('y');
      }
    },
    close() {
      lines.off('close', end);
      signal.removeEventListener('abort', end);
      lines.close();
    },
  };
}

function harmless(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\ufffd');
}
