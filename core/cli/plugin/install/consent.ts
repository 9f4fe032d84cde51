/** What is on gets no permission that nobody has agreed to. */
import { createInterface } from 'node:readline/promises';
import type { CliContext } from '../../../contract/cli.ts';
import type { Permission } from '../../../contract/services.ts';
import { enabledIn } from '../../../config/peek.ts';
import type { Peeked } from '../../../config/peek.ts';
import { inWords } from '../../../plugins/permissions.ts';
import { isOlder } from './source.ts';
import type { PluginStore } from './store.ts';

export interface Newcomer {
  readonly name: string;
  readonly version: string;
  readonly permissions: readonly Permission[];
}

export interface Surroundings {
  readonly cli: Pick<CliContext, 'json' | 'signal' | 'printError'>;
  readonly peeked: Pick<Peeked, 'switched' | 'isolation'>;
  readonly store: Pick<PluginStore, 'permissions'>;
  readonly agreement: Agreement;
}

/** What was agreed to beforehand: all (`--yes`), or just what these sentences say (`--yes=SENTENCE`). */
export interface Agreement {
  readonly toAll: boolean;
  readonly to: ReadonlySet<string>;
}

export const NOTHING_AGREED: Agreement = { toAll: false, to: new Set() };

const YES = '--yes';

export function isYes(word: string): boolean {
  return word === YES || word.startsWith(`${YES}=`);
}

/** By the words of a command line. */
export function agreementIn(words: readonly string[]): Agreement {
  const to = words.filter(isYes).map((word) => word.slice(YES.length + 1));
  return { toAll: words.includes(YES), to: new Set(to) };
}

/** Where somebody can be asked; tests give a terminal of their own. */
export interface Person {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/**
 * Asks where a plugin that is on wants more than the version before it, and where it is not known what that was given;
 * one that is off is shown before it is switched on. Rejects with a sentence where nobody agrees or nobody can be
 * asked.
 */
export async function agreeToMore(
  { name, version, permissions }: Newcomer,
  { cli, peeked, store, agreement }: Surroundings,
  person?: Person,
): Promise<void> {
  if (agreement.toAll || !enabledIn(peeked).has(name)) return;
  const may = wantedBy(permissions, await store.permissions(name), peeked.isolation.get(name) === 'none');
  if (may === undefined) return;
  const words = `version ${version} may ${may}, and the plugin is on`;
  if (!agreement.to.has(words)) await agree(name, words, cli, person);
}

/** Asks where a change leads back, to what was mended since perhaps. Rejects with a sentence. */
export async function agreeToOlder(
  { name, version }: Omit<Newcomer, 'permissions'>,
  former: string,
  { cli, agreement }: Pick<Surroundings, 'cli' | 'agreement'>,
  person?: Person,
): Promise<void> {
  if (agreement.toAll || !isOlder(version, former)) return;
  const words = `version ${version} is older than ${former}, which is there`;
  if (!agreement.to.has(words)) await agree(name, words, cli, person);
}

async function agree(
  name: string,
  words: string,
  cli: Surroundings['cli'],
  person: Person = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (cli.json || person.input.isTTY !== true)
    throw new Error(`${words}; nobody is asked here, --yes agrees to it`);
  cli.printError(`${name}: ${words}.`);
  if (!(await isConfirmed('Take it?', cli.signal, person)))
    throw new Error(`${words}; nobody agreed to that`);
}

/** In words that follow "it may"; undefined where the version before it was given all of that. */
function wantedBy(
  asked: readonly Permission[],
  granted: readonly Permission[] | undefined,
  isInProcess: boolean,
): string | undefined {
  if (isInProcess) return granted ? undefined : 'do everything that the daemon may, as it runs inside it';
  if (!granted) return inWords(asked);
  const has = new Set<Permission>(granted.includes('files') ? [...granted, 'own-files'] : granted);
  const more = asked.filter((one) => !has.has(one));
  return more.length === 0 ? undefined : `also ${inWords(more)}`;
}

/** False also where the terminal goes away or Ctrl-C is pressed. */
async function isConfirmed(
  question: string,
  signal: AbortSignal,
  { input, output }: Person,
): Promise<boolean> {
  const over = new AbortController();
  const lines = createInterface({ input, output });
  for (const event of ['SIGINT', 'close'] as const) lines.once(event, () => over.abort());
  try {
    const answer = await lines.question(`${question} [y/N]: `, {
      signal: AbortSignal.any([signal, over.signal]),
    });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    // The question was interrupted, which is no yes.
    return false;
  } finally {
    lines.close();
  }
}
