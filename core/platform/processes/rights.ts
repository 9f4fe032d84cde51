/**
 * What a child of a root daemon is left with. One that reads a network's or a stranger's bytes needs nothing of
 * root: it runs as a user of its own, without capabilities, and no program that it starts gets any back.
 */
import { readFile } from 'node:fs/promises';
import type { ProcessRights, Processes, ServiceUser } from '../../contract/platform.ts';

/** Made by the package, and by `npm run setup` as root. */
export const SERVICE_USER = 'mountkeeper';
/**
 * Beside it, for strangers' plugins: the kernel lets each process signal all others of its user, and those of the other
 * one serve the network.
 */
export const PLUGINS_USER = 'mountkeeper-plugins';
/** Long: a machine that is busy at the start of a daemon is no reason for another user. */
const PROBE_MS = 60_000;
/** $1: how many files; then these, which it must read, and folders in which all is to be root's. */
const REACHES_ALL = `
count=$1
shift
while [ "$count" -gt 0 ]; do
  [ -r "$1" ] || exit 1
  count=$((count - 1))
  shift
done
for folder; do
  strange=$(find "$folder" -xdev ! -uid 0 -print -quit) && [ -z "$strange" ] || exit 1
done`;

export interface RightsWanted {
  readonly processes: Pick<Processes, 'run'>;
  /** In lower case and without `cap_`. */
  readonly capabilities: readonly string[];
  /** What the process must be able to read by path: its program and all that this loads. */
  readonly files: readonly string[];
}

export interface RootRightsWanted extends Omit<RightsWanted, 'files'> {
  readonly files?: readonly string[];
  /** Folders in which it works on what is root's alone; they are there. */
  readonly ownFolders?: readonly string[];
}

/** The user of this machine that such children run as; undefined where there is none. */
export async function serviceUser(
  passwd = '/etc/passwd',
  name = SERVICE_USER,
): Promise<ServiceUser | undefined> {
  // A machine without the file has no such user.
  const lines = (await readFile(passwd, 'utf8').catch(() => '')).split('\n');
  const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  const user = { uid: Number(uid), gid: Number(gid) };
  return user.uid > 0 && user.gid > 0 ? user : undefined;
}

/**
 * The least that such a process can be started with here: as the user of its own; where there is none, or it may not
 * read the program, as the daemon's user without capabilities; where the machine has no `setpriv` or does not let it
 * drop anything, undefined. Undefined, too, for a daemon that is not root, whose children have nothing to lose.
 */
export async function leastRights(wanted: RightsWanted): Promise<ProcessRights | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const { capabilities } = wanted;
  const user = await serviceUser();
  const asUser = user ? [{ user, capabilities }] : [];
  for (const rights of [...asUser, { capabilities }]) if (await isPossible(rights, wanted)) return rights;
  return undefined;
}

/**
 * Root with these capabilities and no others, for a child that works on what is root's. Undefined where they do not
 * take it to all that it needs, where the machine cannot drop any, and for a daemon that is not root.
 */
export async function rootWith({
  processes,
  capabilities,
  files = [],
  ownFolders = [],
}: RootRightsWanted): Promise<ProcessRights | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const rights = { capabilities };
  const isAlone = files.length + ownFolders.length === 0;
  const isGranted = isAlone
    ? isGrantedHere(rights, processes)
    : isPossible(rights, { processes, files, ownFolders });
  return (await isGranted) ? rights : undefined;
}

/** By capabilities: what a machine lets drop stays the same for as long as the daemon runs. */
const granted = new WeakMap<Pick<Processes, 'run'>, Map<string, Promise<boolean>>>();

/** Asked once, whatever number of shares is mounted; a refusal may have been a busy machine's. */
function isGrantedHere(rights: ProcessRights, processes: Pick<Processes, 'run'>): Promise<boolean> {
  const known = granted.get(processes) ?? new Map<string, Promise<boolean>>();
  granted.set(processes, known);
  const key = rights.capabilities.join();
  const asked = known.get(key) ?? isPossible(rights, { processes, files: [] });
  known.set(key, asked);
  void asked.then((isGranted) => isGranted || known.delete(key));
  return asked;
}

interface Reach extends Pick<RightsWanted, 'processes' | 'files'> {
  readonly ownFolders?: readonly string[];
}

async function isPossible(
  rights: ProcessRights,
  { processes, files, ownFolders = [] }: Reach,
): Promise<boolean> {
  const reached = [String(files.length), ...files, ...ownFolders];
  const args = [...droppingTo(rights), 'sh', '-c', REACHES_ALL, 'sh', ...reached];
  const spec = { command: 'setpriv', args, timeoutMs: PROBE_MS };
  // Without `setpriv`, or with one that hangs, it is not possible.
  const probe = await processes.run(spec).catch(() => undefined);
  return probe?.code === 0;
}

/** The arguments for `setpriv`, before the command. */
export function droppingTo({ user, capabilities }: ProcessRights): readonly string[] {
  const kept = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  return [
    ...(user ? [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'] : []),
    '--no-new-privs',
    // A program of root gets what the bounding set leaves, one of another user only what is ambient. To keep what the
    // daemon itself lacks is refused but in the bounding set.
    `--inh-caps=${user ? kept : '-all'}`,
    `--ambient-caps=${user ? kept : '-all'}`,
    `--bounding-set=${kept}`,
  ];
}
