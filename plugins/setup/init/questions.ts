/** The guide: at most six questions, each with a default; the NAS is tried before the next one. */
import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import type { CliContext, FoundNas, NasAnswers, NasKind, SetupAnswers } from 'mountkeeper';
import type { SetupCalls } from '../requests.ts';
import { readSmallFile } from '../terminal/small-file.ts';
import type { Prompter } from '../terminal/prompter.ts';
import { joinAddress, splitAddress } from './address.ts';
import type { InitFlags } from './flags.ts';
import { FOLDER_HELP, readFolders } from './folder-choice.ts';

const SHOWN_FOLDERS = 200;
/** The answer for shares that nobody on the LAN may use. */
const NOBODY = '-';

type Place = Pick<NasAnswers, 'kind' | 'address'>;

export interface Guide {
  readonly cli: CliContext;
  readonly calls: SetupCalls;
  readonly flags: InitFlags;
  /** Absent: nobody is there to be asked, and what no flag says takes its default. */
  readonly prompter: Prompter | undefined;
}

/** A password of the LAN that was made here; it is shown once, at the end. */
export interface Given {
  readonly answers: SetupAnswers;
  readonly madePassword: string | undefined;
}

export async function collectAnswers(guide: Guide): Promise<Given> {
  const { nas, names } = await reachedNas(guide);
  const folders = await chosenFolders(guide, nas, names);
  return lanOf(guide, { nas, folders });
}

/** Asks until the NAS lists its folders; without a person, one refusal is the end. */
async function reachedNas(
  guide: Guide,
): Promise<{ readonly nas: NasAnswers; readonly names: readonly string[] }> {
  const { cli, calls, prompter } = guide;
  const found = prompter && guide.flags.address === undefined ? await lookAround(guide) : [];
  let former: NasAnswers | undefined;
  for (;;) {
    const nas = await askNas(guide, found, former);
    cli.progress('Asking the NAS …');
    const { ok, message, folders } = await calls.folders({ nas, path: '' });
    if (ok) return { nas, names: folders };
    if (!prompter) throw new Error(`the NAS refuses: ${message}`);
    cli.printError(`The NAS refuses: ${message}`);
    former = nas;
  }
}

async function lookAround({ cli, calls }: Guide): Promise<readonly FoundNas[]> {
  cli.progress('Looking for a NAS in the network …');
  const found = await calls.found();
  found.forEach(({ name, kind, address }, index) =>
    cli.print(`  ${index + 1}  ${name} (${kind}, ${address})`),
  );
  return found;
}

/** What a flag says is not asked; after a refusal all of it is, with the former answers as defaults. */
async function askNas(
  guide: Guide,
  found: readonly FoundNas[],
  former: NasAnswers | undefined,
): Promise<NasAnswers> {
  const { prompter } = guide;
  const flags: Partial<InitFlags> = former ? {} : guide.flags;
  const where = await askAddress(guide, found, former);
  const user = flags.user ?? (await prompter?.ask('User name there', former?.user ?? userInfo().username));
  const password =
    flags.passwordFile === undefined
      ? await prompter?.secret('Password there (not shown; empty for none)')
      : await passwordFrom(flags.passwordFile);
  return { ...where, user: user ?? '', password: password ?? '' };
}

function askAddress(
  guide: Guide,
  found: readonly FoundNas[],
  former: NasAnswers | undefined,
): Promise<Place> | Place {
  const { kind = 'smb', address = '' } = former ?? guide.flags;
  if (!guide.prompter || (!former && address !== '')) return splitAddress(address, kind);
  return typedAddress(guide.cli, guide.prompter, { found, kind, usual: former ? joinAddress(former) : '' });
}

interface AddressQuestion {
  readonly found: readonly FoundNas[];
  /** For an address that names none. */
  readonly kind: NasKind;
  /** Never one that was found: any machine in the network may announce itself and be sent the password. */
  readonly usual: string;
}

async function typedAddress(
  cli: CliContext,
  prompter: Prompter,
  { found, kind, usual }: AddressQuestion,
): Promise<Place> {
  const question = `Address of the NAS${found.length > 0 ? ', or its number above' : ''}`;
  for (;;) {
    const text = await prompter.ask(question, usual);
    const chosen = found[Number(text) - 1];
    if (chosen) return announced(cli, chosen);
    if (/^\d+$/.test(text)) cli.printError(`There is no number ${text} above.`);
    else if (text !== '') return splitAddress(text, kind);
  }
}

function announced(cli: CliContext, { kind, name, address }: FoundNas): Place {
  cli.print(`${name}: ${joinAddress({ kind, address })}`);
  return { kind, address };
}

/** The first line of a file, or of standard input. */
export async function passwordFrom(file: string): Promise<string> {
  const text =
    file === '-'
      ? await firstInput()
      : await readSmallFile({ path: file, what: `the password file ${file}` });
  const password = text.split(/\r?\n/, 1)[0] ?? '';
  if (password === '')
    throw new Error(`the first line of ${file === '-' ? 'standard input' : file} is empty`);
  return password;
}

async function firstInput(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.includes('\n') || text.length > 65_536) break;
  }
  return text;
}

async function chosenFolders(
  guide: Guide,
  nas: NasAnswers,
  names: readonly string[],
): Promise<readonly string[]> {
  const { calls, flags, prompter } = guide;
  if (flags.folders) {
    await assertThere(calls, nas, flags.folders);
    return flags.folders;
  }
  if (prompter) return askFolders(guide, nas, names);
  return names.length > 0 ? names : [''];
}

async function askFolders(
  { cli, calls, prompter }: Guide,
  nas: NasAnswers,
  atRoot: readonly string[],
): Promise<readonly string[]> {
  let [at, names] = ['', atRoot];
  for (;;) {
    showFolders(cli, at, names);
    const choice = readFolders((await prompter?.ask('Which folders', 'all')) ?? 'all', at, names);
    try {
      if ('problem' in choice) throw new Error(choice.problem);
      if ('chosen' in choice) {
        await assertThere(calls, nas, unlisted(choice.chosen, at, names));
        return choice.chosen;
      }
      const { ok, message, folders } = await calls.folders({ nas, path: choice.go });
      if (!ok) throw new Error(`The NAS refuses: ${message}`);
      [at, names] = [choice.go, folders];
    } catch (error) {
      cli.signal.throwIfAborted();
      cli.printError((error as Error).message);
    }
  }
}

function showFolders(cli: CliContext, at: string, names: readonly string[]): void {
  cli.print(`Folders in /${at}:`);
  names.slice(0, SHOWN_FOLDERS).forEach((name, index) => cli.print(`  ${index + 1}  ${name}`));
  if (names.length > SHOWN_FOLDERS) cli.print(`  … and ${names.length - SHOWN_FOLDERS} more`);
  if (names.length === 0) cli.print('  none; "." shares this folder itself');
  cli.print(FOLDER_HELP);
}

/** Folders that the NAS has not just listed. */
function unlisted(chosen: readonly string[], at: string, names: readonly string[]): readonly string[] {
  const listed = new Set([at, ...names.map((name) => (at === '' ? name : `${at}/${name}`))]);
  return chosen.filter((folder) => !listed.has(folder));
}

/** One after the other: each costs the NAS a sign-in. */
async function assertThere(calls: SetupCalls, nas: NasAnswers, folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const { ok, message } = await calls.folders({ nas, path: folder });
    if (!ok) throw new Error(`the folder "${folder}" of the NAS cannot be used: ${message}`);
  }
}

async function lanOf(guide: Guide, answers: Pick<SetupAnswers, 'nas' | 'folders'>): Promise<Given> {
  const user = await lanUser(guide, answers.nas.user === '' ? 'family' : answers.nas.user);
  if (user === NOBODY) return { answers, madePassword: undefined };
  const { flags, prompter } = guide;
  const typed =
    flags.lanPasswordFile === undefined
      ? await prompter?.secret('Password for them (not shown; empty: one is made up)')
      : await passwordFrom(flags.lanPasswordFile);
  if (typed !== undefined && typed !== '')
    return { answers: { ...answers, lan: { user, password: typed } }, madePassword: undefined };
  // 96 bits, in letters that every keyboard has.
  const password = randomBytes(12).toString('base64url');
  return { answers: { ...answers, lan: { user, password } }, madePassword: password };
}

async function lanUser({ flags, prompter }: Guide, usual: string): Promise<string> {
  if (flags.noLan) return NOBODY;
  if (flags.lanUser !== undefined) return flags.lanUser;
  if (!prompter && flags.lanPasswordFile !== undefined)
    throw new Error('--lan-password-file needs --lan-user: nobody is there to be asked whose password it is');
  if (!prompter) return NOBODY;
  return prompter.ask(`Name by which people on the LAN sign in ("${NOBODY}": this machine alone)`, usual);
}
