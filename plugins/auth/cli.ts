/** `mountkeeper hash-password`: prints a hash to be used instead of the password. */
import { createInterface } from 'node:readline';
import type { CliCommand, CliContext } from 'mountkeeper';
import { makeHash } from './password-hash.ts';

/** The first line of standard input; undefined when there is none. */
async function readLine(signal: AbortSignal): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, signal });
  try {
    for await (const line of lines) return line;
    return undefined;
  } finally {
    lines.close();
    process.stdin.unref?.();
  }
}

async function run(cli: CliContext): Promise<number> {
  if (cli.args.length > 0) {
    cli.printError(
      'Give the password on standard input, not as an argument: arguments are readable by every user of this machine.',
    );
    return 64;
  }
  if (cli.isTerminal) cli.printError('Type the password (it is shown) and press Enter:');
  const password = await readLine(cli.signal);
  if (password === undefined || password === '') {
    cli.printError('No password was given on standard input.');
    return 64;
  }
  const hash = await makeHash(password);
  cli.print(cli.json ? JSON.stringify({ hash }) : hash);
  return 0;
}

export const hashPasswordCommand: CliCommand = {
  name: 'hash-password',
  usage: '',
  summary: 'Read a password from standard input and print a hash of it for web.password.',
  run,
};
