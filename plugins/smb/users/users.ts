import { createHash, randomBytes } from 'node:crypto';
import { access, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import type { Logger, Secrets } from 'mountkeeper';
import { renderGroup, renderPasswd } from './accounts.ts';
import type { Owner } from './accounts.ts';
import { PasswordDatabase } from './password-database.ts';
import type { SmbUser } from '../config.ts';
import type { SmbPaths } from '../paths.ts';
import type { SambaTools } from '../samba.ts';

/** The input of the tool that sets it. */
const LONGEST_PASSWORD = 254;

export interface UserTools extends SambaTools {
  readonly log: Logger;
  readonly owner: Owner;
  /** Ends the sessions of users who lost access. */
  readonly cut: (users: readonly string[]) => Promise<void>;
}

/** Users whose password is known, and a sentence for each of the others. */
export interface KnownUsers {
  readonly passwords: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

export function resolveUsers(users: readonly SmbUser[], secrets: Secrets): KnownUsers {
  const passwords = new Map<string, string>();
  const problems: string[] = [];
  for (const { name, password } of users) {
    try {
      const clear = secrets.resolve(password);
      const problem = passwordProblem(clear);
      if (problem === undefined) passwords.set(name, clear);
      else problems.push(`the SMB user "${name}" cannot log in: ${problem}`);
    } catch (error) {
      problems.push(`the SMB user "${name}" cannot log in: ${(error as Error).message}`);
    }
  }
  return { passwords, problems };
}

function passwordProblem(clear: string): string | undefined {
  if (/[\n\r\0]/.test(clear) || clear === '') return 'the password is empty or holds a line break';
  return Buffer.byteLength(clear) > LONGEST_PASSWORD
    ? `the password is longer than ${LONGEST_PASSWORD} bytes`
    : undefined;
}

interface Known {
  readonly salt: string;
  /** Who may be in the password database: name → hash of the password that is documented, or UNSURE. */
  readonly marks: Marks;
  /**
   * Name → hash of what the database held once that password had been set. Former versions noted none, and users
   * could change their passwords: all are set anew.
   */
  readonly stored?: Marks;
}

type Marks = Readonly<Record<string, string>>;

/** The password is being set, or could not be: the former one may be right, so the user is kept in mind. */
const UNSURE = '';

export interface SettledUsers {
  /** The reason for each user whose password could not be set; the others can log in. */
  readonly failures: ReadonlyMap<string, string>;
  /** Why nobody knows what the database holds; undefined when it was looked at. */
  readonly unseen: string | undefined;
}

/**
 * Updates the private user list and the password database; unchanged entries are not touched. A password that
 * somebody else has put into the database is set anew, with a warning in the log. Rejects only when the notes or the
 * user list cannot be written, or sessions of removed users cannot be ended.
 */
export async function settleUsers(
  passwords: ReadonlyMap<string, string>,
  tools: UserTools,
): Promise<SettledUsers> {
  const { paths, owner } = tools;
  const known = await knownUsers(paths);
  const names = [...passwords.keys()];
  const leaving = Object.keys(known.marks).filter((name) => !passwords.has(name));
  await writeIfOther(paths.nssGroup, renderGroup(owner));
  // A removed user must still be known while the password is deleted.
  await writeIfOther(paths.nssPasswd, renderPasswd([...names, ...leaving], owner));
  const keep = (marks: Marks, stored: Marks = {}): Promise<void> =>
    writeIfOther(paths.users, `${JSON.stringify({ salt: known.salt, marks, stored } satisfies Known)}\n`);
  const wanted = marksOf(passwords, known.salt);
  const unnoted = names.filter((name) => !isNoted(name, known, wanted));
  // Before any tool runs: one that fails, or a daemon that is killed meanwhile, leaves every name that may be in the
  // database, and nobody is let in by a former password.
  await keep({ ...known.marks, ...unsure(unnoted) }, known.stored);
  const database = new PasswordDatabase(tools);
  await removePasswords(leaving, tools, database);
  await writeIfOther(paths.nssPasswd, renderPasswd(names, owner));

  const entries = async (): Promise<Marks> => marksOf(await database.entries(names), known.salt);
  const before = await look(names, () => database.forbidChangesByUsers().then(entries));
  const changed = changedByOthers(names, [known, wanted, before.found]);
  for (const user of changed)
    tools.log.warn({ user }, "an SMB user's password was changed past the configuration, and is set anew");
  const unset = [...unnoted, ...changed];
  await keep({ ...known.marks, ...unsure(unset) }, known.stored);
  const failures = before.found ? await setPasswords(unset, passwords, database) : new Map<string, string>();
  const { found, unseen } = before.found && unset.length > 0 ? await look(names, entries) : before;
  if (unseen !== undefined) for (const name of unset) failures.set(name, unseen);
  await keep({ ...wanted, ...unsure(failures.keys()) }, found ?? known.stored);
  return { failures, unseen };
}

/**
 * True when the daemon has set the wanted password and has read back what was stored. Such a user is let in also while
 * nobody can look at the database: since then smbd has refused changes by users, by a policy that it keeps on disk, so
 * that only root can have put another password there, past the daemon. To keep the user out for a tool that is slow or
 * a disk that is full would keep out nobody else.
 */
function isNoted(name: string, { marks, stored }: Known, wanted: Marks): boolean {
  return marks[name] === wanted[name] && stored?.[name] !== undefined;
}

interface Look {
  readonly found?: Marks;
  readonly unseen: string | undefined;
}

/** Never rejects: it is no reason to keep smbd from starting. Without users there is nothing to look at. */
async function look(names: readonly string[], entries: () => Promise<Marks>): Promise<Look> {
  if (names.length === 0) return { found: {}, unseen: undefined };
  return entries().then(
    (found) => ({ found, unseen: undefined }),
    (error: unknown) => ({ unseen: (error as Error).message }),
  );
}

function changedByOthers(
  names: readonly string[],
  [known, wanted, found]: readonly [Known, Marks, Marks | undefined],
): readonly string[] {
  if (!found) return [];
  return names.filter((name) => isNoted(name, known, wanted) && known.stored?.[name] !== found[name]);
}

/** Users whose former password may be right: no share may let them in. */
export async function unsureUsers(paths: SmbPaths): Promise<ReadonlySet<string>> {
  const { marks } = await knownUsers(paths);
  return new Set(Object.keys(marks).filter((name) => marks[name] === UNSURE));
}

/** Ends sessions that removed users had opened before. */
async function removePasswords(
  leaving: readonly string[],
  tools: UserTools,
  database: PasswordDatabase,
): Promise<void> {
  for (const name of leaving) {
    await database
      .remove(name)
      .catch((error: unknown) => tools.log.warn({ user: name, err: error }, 'SMB user not removed'));
  }
  if (leaving.length > 0) await tools.cut(leaving);
}

/** Resolves with the reason for each user whose password could not be set. */
async function setPasswords(
  names: readonly string[],
  passwords: ReadonlyMap<string, string>,
  database: PasswordDatabase,
): Promise<Map<string, string>> {
  const failures = new Map<string, string>();
  for (const name of names) {
    try {
      await database.set(name, passwords.get(name) as string);
    } catch (error) {
      failures.set(name, (error as Error).message);
    }
  }
  return failures;
}

function marksOf(passwords: ReadonlyMap<string, string>, salt: string): Marks {
  return Object.fromEntries([...passwords].map(([name, password]) => [name, markOf(salt, name, password)]));
}

function unsure(names: Iterable<string>): Marks {
  return Object.fromEntries([...names].map((name) => [name, UNSURE]));
}

async function knownUsers(paths: SmbPaths): Promise<Known> {
  const fresh: Known = { salt: randomBytes(16).toString('hex'), marks: {} };
  const hasDatabase = await access(paths.passdb).then(
    () => true,
    () => false,
  );
  if (!hasDatabase) {
    // Cached ids would belong to users of the former database.
    await rm(join(paths.folder('lock'), 'gencache.tdb'), { force: true });
    return fresh;
  }
  try {
    const known = JSON.parse(await readFile(paths.users, 'utf8')) as Known;
    return typeof known.salt === 'string' && typeof known.marks === 'object' ? known : fresh;
  } catch {
    // Nobody knows whose passwords it holds: all are set anew.
    await rm(paths.passdb, { force: true });
    return fresh;
  }
}

/** Before the first is let in, so that a daemon that comes after a killed one knows whom to throw out. */
export async function noteGuests(paths: SmbPaths): Promise<void> {
  if (!(await mayHaveGuests(paths))) await writeWhole(paths.guests, '');
}

export function mayHaveGuests({ guests }: SmbPaths): Promise<boolean> {
  return access(guests).then(
    () => true,
    () => false,
  );
}

/** Once all of them are out. */
export async function forgetGuests({ guests }: SmbPaths): Promise<void> {
  await rm(guests, { force: true });
}

/** The database itself contains a hash that is no harder to attack; both are readable only by the owner. */
function markOf(salt: string, name: string, password: string): string {
  return createHash('sha256').update(`${salt}\0${name}\0${password}`).digest('hex');
}

async function writeIfOther(file: string, text: string): Promise<void> {
  // Not there, or unreadable: written anew.
  const current = await readFile(file, 'utf8').catch(() => undefined);
  if (current !== text) await writeWhole(file, text);
}
