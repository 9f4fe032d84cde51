/** `mountkeeper init`: from the address of a NAS to a share on the LAN, on the terminal. */
import type { CliContext, SetupAnswers } from 'mountkeeper';
import { offlineCalls } from '../offline.ts';
import type { AppliedAnswer, SetupCalls } from '../requests.ts';
import { createPrompter, INTERRUPTED } from '../terminal/prompter.ts';
import type { Prompter } from '../terminal/prompter.ts';
import { readFlags } from './flags.ts';
import type { InitFlags } from './flags.ts';
import { collectAnswers } from './questions.ts';
import { remoteCalls } from './remote-calls.ts';

const EXIT = { done: 0, failed: 1, usage: 64 } as const;

async function run(cli: CliContext): Promise<number> {
  const flags = readFlags(cli.args);
  const problem = typeof flags === 'string' ? flags : problemOf(flags, cli.json);
  if (typeof flags === 'string' || problem !== undefined) {
    cli.printError(`mountkeeper init: ${problem}`);
    return EXIT.usage;
  }
  const isRunning = await cli.hasDaemon();
  const calls = isRunning ? remoteCalls(cli) : await offlineCalls(cli);
  const prompter = flags.yes
    ? undefined
    : createPrompter({ input: process.stdin, output: process.stderr, signal: cli.signal });
  try {
    return await guide({ cli, flags, calls, prompter, isRunning });
  } finally {
    prompter?.close();
  }
}

/** Somebody has to agree: a person on a terminal, or `--yes`. */
function problemOf({ yes, address }: InitFlags, isJson: boolean): string | undefined {
  const mayAsk = process.stdin.isTTY === true && !isJson;
  if (yes ? address !== undefined : mayAsk) return undefined;
  return 'nobody is asked here; give the answers by flags, at least --address and --yes (see mountkeeper help init)';
}

class InterruptedWrite extends Error {
  constructor(cause: unknown) {
    super('interrupted while the daemon was writing: all of it is in the configuration, or nothing', {
      cause,
    });
  }
}

interface Parts {
  readonly cli: CliContext;
  readonly flags: InitFlags;
  readonly calls: SetupCalls;
  readonly prompter: Prompter | undefined;
  readonly isRunning: boolean;
}

async function guide(parts: Parts): Promise<number> {
  const { cli, flags, calls, prompter, isRunning } = parts;
  const present = await calls.present();
  if (present.length > 0 && !(await mayAdd(parts, present))) return EXIT.failed;
  const { answers, madePassword } = await collectAnswers({ cli, calls, flags, prompter });
  if (!(await isAgreed(parts, answers))) return EXIT.failed;
  cli.signal.throwIfAborted();
  const applied = await calls.apply(answers).catch((cause: unknown) => {
    throw cli.signal.aborted ? new InterruptedWrite(cause) : cause;
  });
  // The user that was there has another one.
  const password = applied.user_kept ? undefined : madePassword;
  if (cli.json) cli.print(JSON.stringify({ ...applied, ...(password !== undefined && { password }) }));
  else if (applied.ok) report(cli, applied, { answers, madePassword: password, isRunning });
  else cli.printError(applied.message);
  return applied.ok ? EXIT.done : EXIT.failed;
}

/** Nothing that is there is ever replaced; adding to it is for somebody to say. */
async function mayAdd({ cli, flags, prompter }: Parts, present: readonly string[]): Promise<boolean> {
  if (flags.add) return true;
  const what = `${cli.configFile} has shares already: ${present.join(', ')}`;
  if (prompter) {
    cli.print(`${what}. They stay as they are.`);
    return prompter.confirm('Add more to them?', false);
  }
  cli.printError(`${what}; they stay as they are, and --add adds more to them`);
  return false;
}

async function isAgreed({ cli, calls, prompter }: Parts, answers: SetupAnswers): Promise<boolean> {
  const { ok, message, toml, warnings } = await calls.review(answers);
  if (!ok) {
    cli.printError(message);
    return false;
  }
  if (!cli.json) cli.print(`\nTo be added to ${cli.configFile}:\n\n${toml.trimEnd()}\n`);
  for (const warning of warnings) cli.printError(`warning: ${warning}`);
  if (!prompter || (await prompter.confirm('Write this?', true))) return true;
  cli.printError('Nothing was changed.');
  return false;
}

interface Outcome {
  readonly answers: SetupAnswers;
  readonly madePassword: string | undefined;
  readonly isRunning: boolean;
}

function report(
  cli: CliContext,
  applied: AppliedAnswer,
  { answers, madePassword, isRunning }: Outcome,
): void {
  cli.print(isRunning ? 'Done; the daemon is mounting.' : `${cli.configFile} is written.`);
  for (const { share, finder, explorer, linux } of applied.addresses) {
    cli.print(`\n${share}`);
    cli.print(`  Finder     ${finder}`);
    cli.print(`  Explorer   ${explorer ?? 'reaches port 445 alone'}`);
    cli.print(`  Linux      ${linux}`);
  }
  if (answers.lan)
    cli.print(
      `\nSign in as ${answers.lan.user}` +
        (applied.user_kept
          ? ', with the password that this user has already'
          : madePassword === undefined
            ? ''
            : `, password ${madePassword}`),
    );
  else cli.print('The shares can be used on this machine alone, below mount.root.');
  cli.print(
    isRunning
      ? 'mountkeeper status shows how it goes.'
      : 'Start the daemon now: systemctl enable --now mountkeeper, or mountkeeper run.',
  );
}

/** Whatever Ctrl-C interrupts says so in the same words; only a whole set of answers is ever written. */
export async function init(cli: CliContext): Promise<number> {
  try {
    return await run(cli);
  } catch (error) {
    if (cli.signal.aborted && !(error instanceof InterruptedWrite))
      throw new Error(INTERRUPTED, { cause: error });
    throw error;
  }
}
