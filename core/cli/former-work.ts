/** What former starts made of the modules, for this one: before anything else is read. */
import { peekConfig } from '../config/peek.ts';
import { useCompiled } from '../platform/compile-cache.ts';
import { configFileOf, parseArguments } from './arguments.ts';
import type { Arguments } from './arguments.ts';

/** The daemon makes the folder; a subcommand of the same user finds it there. Never rejects. */
export async function useFormerWork(argv: readonly string[]): Promise<void> {
  const args = argumentsIn(argv);
  if (args === undefined) return;
  const { stateDir } = await peekConfig(configFileOf(args));
  await useCompiled(stateDir, { mayMake: args.command === 'run' });
}

function argumentsIn(argv: readonly string[]): Arguments | undefined {
  try {
    return parseArguments(argv);
  } catch {
    // Whoever parses them in earnest says what is wrong with them.
    return undefined;
  }
}
