/** Who of this machine may log in: the members of one of its groups, as `getent` knows them. */
import type { Clock, Processes } from 'mountkeeper';

/** Lower ones are services', and root's. */
const FIRST_UID = 1_000;
const NOBODY_UID = 65_534;
const MOST_MEMBERS = 1_000;
const READ_EVERY_MS = 5_000;
const READ_MS = 5_000;
/** What `getent` says when something that was asked for is not there. */
const NOT_FOUND = 2;
/** A directory that is being started has no group for a while, and no account. */
const MOST_MISSED = 6;

/** The machine has answered, and nobody is to come in by such a group. */
class UnfitGroup extends Error {}
/** The same, if it stays so. */
class MissingGroup extends Error {}

export interface SystemGroupOptions {
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'run'>;
}

export class SystemGroup {
  readonly #options: SystemGroupOptions;
  #group: string | undefined;
  /** Undefined until the machine has said who they are. */
  #members: readonly string[] | undefined;
  /** So many readings in a row did not find the group. */
  #missed = 0;
  #problem: string | undefined;
  #readAt = -Infinity;

  constructor(options: SystemGroupOptions) {
    this.#options = options;
  }

  /** As last read. Undefined: not known yet, as those of another group than the one that is read. */
  members(group: string | undefined): readonly string[] | undefined {
    if (group === undefined) return [];
    return group === this.#group ? this.#members : undefined;
  }

  /** Why members are not known, or not all; for people to read. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * At most every 5 s. Where the machine does not answer, finds none of the accounts, or has not found the group for
   * half a minute at most, who was a member stays one: PAM is asked all the same.
   */
  async read(group: string | undefined): Promise<void> {
    const { clock, processes } = this.#options;
    const isAnother = group !== this.#group;
    if (!isAnother && this.#readAt + READ_EVERY_MS > clock.monotonic()) return;
    this.#readAt = clock.monotonic();
    if (isAnother)
      [this.#group, this.#members, this.#problem, this.#missed] = [group, undefined, undefined, 0];
    if (group === undefined) return;
    try {
      const members = await membersOf(group, processes);
      // Another one may have been asked for meanwhile.
      if (group !== this.#group) return;
      [this.#members, this.#missed] = [members, 0];
      this.#problem = members.length > 0 ? undefined : nobodyIn(group);
    } catch (error) {
      if (group === this.#group) this.#note(error as Error, group);
    }
  }

  #note(error: Error, group: string): void {
    const isMissing = error instanceof MissingGroup;
    this.#missed = isMissing ? this.#missed + 1 : 0;
    const stays = isMissing && this.#missed < MOST_MISSED;
    if (error instanceof UnfitGroup || (isMissing && !stays)) this.#members = [];
    this.#problem = stays ? notFoundNow(group) : error.message;
  }
}

function notFoundNow(group: string): string {
  return (
    `this machine does not find the group "${group}" (webdav.system_group) just now: ` +
    'who was a member stays one for half a minute'
  );
}

function nobodyIn(group: string): string {
  return `nobody of this machine can log in over WebDAV: the group "${group}" (webdav.system_group) has no members`;
}

/**
 * Names of people, never of root or a service. Rejects with a sentence, also where the group names somebody and not one
 * account is found: a directory that is being started knows nobody.
 */
export async function membersOf(
  group: string,
  processes: Pick<Processes, 'run'>,
): Promise<readonly string[]> {
  const [name, , , list = ''] = (await getent(processes, 'group', [group]))[0] ?? [];
  // A number would have been taken for a group's id.
  if (name !== group) throw new MissingGroup(`this machine has no group "${group}" (webdav.system_group)`);
  const named = list.split(',').filter(isName);
  if (named.length > MOST_MEMBERS)
    throw new UnfitGroup(`the group "${group}" (webdav.system_group) has more than ${MOST_MEMBERS} members`);
  if (named.length === 0) return [];
  const wanted = new Set(named);
  const accounts = await getent(processes, 'passwd', named);
  if (accounts.length === 0)
    throw new Error(
      `this machine finds no account of the members of the group "${group}" (webdav.system_group): ` +
        'who was a member stays one',
    );
  const people = accounts.filter(([account = '', , uid]) => wanted.has(account) && isPerson(Number(uid)));
  return [...new Set(people.map(([account = '']) => account))].sort();
}

/** What an option of `getent`, or another spelling in a login, could be taken for is left out. */
function isName(name: string): boolean {
  return /^[^-\0-\x20\x7f:][^\0-\x1f\x7f:]{0,63}$/.test(name) && name === name.normalize('NFC');
}

function isPerson(uid: number): boolean {
  return Number.isInteger(uid) && uid >= FIRST_UID && uid !== NOBODY_UID;
}

/** The fields of each line. What is not there is left out. */
async function getent(
  processes: Pick<Processes, 'run'>,
  database: string,
  keys: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const { code, stdout } = await processes.run({
    command: 'getent',
    args: [database, '--', ...keys],
    timeoutMs: READ_MS,
    capabilities: [],
  });
  if (code !== 0 && code !== NOT_FOUND)
    throw new Error(`this machine does not say who is in its groups (getent ended with ${code})`);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(':'));
}
