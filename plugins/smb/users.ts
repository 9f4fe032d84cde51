import { createHash, randomBytes } from 'node:crypto';
import { access, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from 'mountkeeper';
import type { Logger, Processes, Secrets } from 'mountkeeper';
import { renderGroup, renderPasswd } from './accounts.ts';
import type { Owner } from './accounts.ts';
import type { SmbUser } from './config.ts';
import type { SmbPaths } from './paths.ts';

const TOOL_MS = 10_000;
/** The input of the tool that sets it. */
const LONGEST_PASSWORD = 254;

export interface UserTools {
  readonly paths: SmbPaths;
  readonly processes: Processes;
  readonly secrets: Secrets;
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

/**
 * Whether files that hold passwords are others than those that were read. They are looked at and not read: reading
 * waits, and with it the daemon, as long as a file system hangs. While one of them is away or empty, nothing counts
 * as changed: its user would be removed and thrown out, for a disk that comes back or a file just being replaced.
 */
export class PasswordFiles {
  readonly #files: readonly string[];
  #read: string | undefined;
  #seen: string | undefined;
  #isLooking = false;

  constructor(users: readonly SmbUser[]) {
    this.#files = users.flatMap(({ password }) =>
      typeof password === 'object' && 'file' in password ? [password.file] : [],
    );
  }

  /** Call it before they are read. */
  async aboutToRead(): Promise<void> {
    this.#read = await stateOf(this.#files);
  }

  /** True once two calls in a row find the same change: a file may just be being written. Never rejects. */
  async haveChanged(): Promise<boolean> {
    if (this.#isLooking) return false;
    this.#isLooking = true;
    const now = await stateOf(this.#files);
    const isSettled = now === this.#seen;
    this.#seen = now;
    this.#isLooking = false;
    const isAnyAway = now.split('\n').includes(AWAY);
    return isSettled && !isAnyAway && this.#read !== undefined && now !== this.#read;
  }
}

const AWAY = 'away';

async function stateOf(files: readonly string[]): Promise<string> {
  const states = await Promise.all(
    files.map((file) =>
      stat(file, { bigint: true }).then(
        ({ dev, ino, size, ctimeNs }) => (size === 0n ? AWAY : [dev, ino, size, ctimeNs].join(' ')),
        // Gone, or not to be reached: why is told when it is read.
        () => AWAY,
      ),
    ),
  );
  return states.join('\n');
}

/** Who may be in the password database: name → hash of the password, or UNSURE. */
interface Known {
  readonly salt: string;
  readonly marks: Readonly<Record<string, string>>;
}

/** The password is being set, or could not be: the former one may be right, so the user is kept in mind. */
const UNSURE = '';

/**
 * Updates the private user list and the password database; unchanged entries are not touched. Resolves with
 * the reason for each user whose password could not be set; the others can log in.
 */
export async function settleUsers(
  passwords: ReadonlyMap<string, string>,
  tools: UserTools,
  environment: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, string>> {
  const { paths } = tools;
  const known = await knownUsers(paths);
  await writeIfOther(paths.nssGroup, renderGroup(tools.owner));
  // A removed user must still be known while the password is deleted.
  const leaving = Object.keys(known.marks).filter((name) => !passwords.has(name));
  await writeIfOther(
    paths.nssPasswd,
    renderPasswd([...new Set([...passwords.keys(), ...leaving])], tools.owner),
  );
  const keep = (marks: Known['marks']): Promise<void> =>
    writeIfOther(paths.users, `${JSON.stringify({ salt: known.salt, marks } satisfies Known)}\n`);
  const wanted = marksOf(passwords, known.salt);
  // Before the tools run: a daemon that is killed meanwhile leaves every name that may be in the database.
  await keep({
    ...known.marks,
    ...unsure([...passwords.keys()].filter((n) => known.marks[n] !== wanted[n])),
  });
  await removePasswords(leaving, tools, environment);
  const failures = await setPasswords(passwords, [known.marks, wanted], (name, input) =>
    runTool(tools, environment, { command: 'smbpasswd', args: ['-c', paths.conf, '-s', '-a', name], input }),
  );
  await keep({ ...wanted, ...unsure(failures.keys()) });
  await writeIfOther(paths.nssPasswd, renderPasswd([...passwords.keys()], tools.owner));
  return failures;
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
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  for (const name of leaving) {
    await runTool(tools, environment, {
      command: 'pdbedit',
      args: ['-s', tools.paths.conf, '-x', '-u', name],
    }).catch((error: unknown) => tools.log.warn({ user: name, err: error }, 'SMB user not removed'));
  }
  if (leaving.length > 0) await tools.cut(leaving);
}

/** Resolves with the reason for each user whose password could not be set. */
async function setPasswords(
  passwords: ReadonlyMap<string, string>,
  [former, wanted]: readonly [Known['marks'], Known['marks']],
  set: (name: string, input: string) => Promise<void>,
): Promise<ReadonlyMap<string, string>> {
  const failures = new Map<string, string>();
  for (const [name, password] of passwords) {
    if (former[name] === wanted[name]) continue;
    try {
      await set(name, `${password}\n${password}\n`);
    } catch (error) {
      failures.set(name, (error as Error).message);
    }
  }
  return failures;
}

function marksOf(passwords: ReadonlyMap<string, string>, salt: string): Known['marks'] {
  return Object.fromEntries([...passwords].map(([name, password]) => [name, markOf(salt, name, password)]));
}

function unsure(names: Iterable<string>): Known['marks'] {
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

interface Tool {
  readonly command: string;
  readonly args: readonly string[];
  readonly input?: string;
}

async function runTool(
  { processes }: UserTools,
  env: Readonly<Record<string, string>>,
  tool: Tool,
): Promise<void> {
  const { code, stderr, stdout } = await processes.run({ ...tool, env, timeoutMs: TOOL_MS });
  if (code !== 0)
    throw new Error(
      `${tool.command} failed for the SMB user "${tool.args.at(-1)}": ` +
        `${(stderr.trim() || stdout.trim()).split('\n').at(-1)}`,
    );
}

async function writeIfOther(file: string, text: string): Promise<void> {
  // Not there, or unreadable: written anew.
  const current = await readFile(file, 'utf8').catch(() => undefined);
  if (current !== text) await writeWhole(file, text);
}
