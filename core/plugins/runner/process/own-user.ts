/**
 * Runners as a user of their own, beside a daemon that is root. In such a runner's view of the machine the state folder
 * holds the plugin's copy and what it keeps, at the paths where they are, and nothing else: Node resolves links on each
 * folder above a module, and the state folder itself is shut. What it keeps is lent to that user while it is up.
 */
import { existsSync } from 'node:fs';
import { chmod, chown, lstat, readFile, readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import path from 'node:path';
import type { ServiceUser } from '../../../contract/platform.ts';
import { createClock } from '../../../platform/clock.ts';
import { giveTree } from '../../../platform/files/give-tree.ts';
import { makeFolder } from '../../../platform/files/make-folder.ts';
import { PLUGINS_USER, serviceUser } from '../../../platform/processes/rights.ts';
import { createKeyedQueue } from '../../../platform/serial-queue.ts';
import { runShortCommand } from '../../../platform/processes/short-command.ts';
import { prepareStage } from '../../discovery/stage.ts';
import { ownFolder } from './confinement.ts';
import type { Confinement } from './confinement.ts';

const ROOT: ServiceUser = { uid: 0, gid: 0 };
/** Its own, with the group that may read the copies. */
const CODE_FOLDER = 0o750;
const CODE_FILE = 0o640;
const PERMISSIONS = 0o777;
/** As `leastRights`: a machine that is busy is no reason for another user. */
const PROBE_MS = 60_000;
/** To end processes of another user, and to see what network they are in and where they come from. */
const NEEDED_CAPABILITIES = { CAP_KILL: 5, CAP_SYS_PTRACE: 19 } as const;
/**
 * Groups from here on are nobody's: systemd leaves them free. Each runner has one of its own, by the process id of its
 * leader: the kernel lets a process read another one's memory, with secrets in it, where both user and group are the
 * same.
 */
export const FIRST_GROUP = 1_879_048_192;
/**
 * The first process of a process namespace gets all orphans in it. Node would leave them zombies, which count as
 * processes of the service: a shell, which waits for whatever ends, starts it there.
 */
const REAPING = '[ $$ -eq 1 ] || exec "$@"; "$@"; exit $?';
/**
 * Processes and threads of that user, of all runners together; Node has about ten. Far below what systemd lets a
 * service have, 15 % of the kernel's: without it, those that double themselves would take all of that between two
 * looks, and no mount could be made.
 */
const MOST_TASKS = 1_000;
const MOST_TASKS_PERCENT = 5;
/**
 * Arguments: the state folder, user and group, what is shown of the folder, `--`, the command. Begins in a mount
 * namespace of its own, as a slave: what is unmounted outside is so in it. Where the machine's mounts do not propagate,
 * a copy of a share's mount would hold that, so it is taken away here. A process namespace gets a /proc of its own: in
 * the machine's it would find the ids of others, which it could not signal anyway.
 */
const VIEW = `set -e
umask 022
state=$1 user=$2 group=$3
shift 3
own=\${RUNNER_GROUP:-$((${FIRST_GROUP} + $$))}
unset RUNNER_GROUP
mounts=$(cat /proc/self/mountinfo)
printf '%s\\n' "$mounts" | while read -r _ _ _ _ at more; do
  case "\${more%% - *}" in *master:*) continue ;; esac
  case "$at \${more#* - }" in
    '/ '*) ;;
    *' fuse'* | *' overlay'*) umount --lazy --no-canonicalize --internal-only "$(printf %b "$at")" 2>/dev/null || : ;;
  esac
done
[ $$ -ne 1 ] || mount -t proc -o nosuid,nodev,noexec proc /proc 2>/dev/null || :
cd "$state"
mount -t tmpfs -o mode=755,size=1m,nosuid,nodev,noexec mountkeeper "$state"
while [ "$1" != -- ]; do
  mkdir -p "$state/$1"
  mount --no-canonicalize --bind "./$1" "$state/$1"
  shift
done
shift
cd /
tasks=$(cat /proc/sys/kernel/threads-max)
tasks=$((tasks * ${MOST_TASKS_PERCENT} / 100))
[ "$tasks" -lt ${MOST_TASKS} ] || tasks=${MOST_TASKS}
# By the letter of bash, or of dash. A lower limit stays.
ulimit -u "$tasks" 2>/dev/null || ulimit -p "$tasks" 2>/dev/null || :
exec setpriv --reuid="$user" --regid="$own" --groups="$group" --no-new-privs \\
  --inh-caps=-all --ambient-caps=-all --bounding-set=-all /bin/sh -c '${REAPING}' sh "$@"`;
const READS_ALL = 'for file; do [ -r "$file" ] || { echo "it may not read $file" >&2; exit 1; }; done';
const MAIN = fileURLToPath(new URL('../inside/runner-main.js', import.meta.url));

/** The group that all processes of a runner with a user of its own have, and cannot leave; by its process id. */
export function runnerGroup(pid: number): number {
  return FIRST_GROUP + pid;
}

/** Whom runners run as, or why they are root's; neither beside a daemon that is not root. */
export interface RunnerUser {
  readonly user?: ServiceUser;
  /** A sentence without its end. */
  readonly why?: string;
}

/** Tried out on this machine. Makes the folder of the copies. */
export async function runnerUser(stateDir: string, passwd?: string): Promise<RunnerUser> {
  if (process.geteuid?.() !== 0) return {};
  const user = await serviceUser(passwd, PLUGINS_USER);
  if (!user) return { why: `there is no user ${PLUGINS_USER} here` };
  const why = await problemWith(user, stateDir).catch((error: unknown) => (error as Error).message);
  return why === undefined ? { user } : { why };
}

async function problemWith(user: ServiceUser, stateDir: string): Promise<string | undefined> {
  const lacking = await lackingCapability();
  if (lacking !== undefined) return `the daemon has no ${lacking}`;
  await prepareStage(stateDir);
  const copies = path.join(stateDir, 'plugins');
  for (const folder of [copies, path.join(copies, 'node_modules')]) await show(folder, CODE_FOLDER, user);
  const files = [
    process.execPath,
    MAIN,
    fileURLToPath(import.meta.resolve('joi')),
    path.join(copies, 'node_modules', 'mountkeeper', 'package.json'),
  ];
  const [command = '', ...args] = viewed(
    user,
    stateDir,
    ['plugins'],
    ['sh', '-c', READS_ALL, 'sh', ...files],
  );
  const { code, stderr } = await runShortCommand({ command, args, timeoutMs: PROBE_MS }, createClock());
  return code === 0 ? undefined : stderr.trim().split('\n').at(-1) || `${command} fails`;
}

async function lackingCapability(): Promise<string | undefined> {
  const status = await readFile('/proc/self/status', 'latin1');
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`);
  return Object.entries(NEEDED_CAPABILITIES).find(([, bit]) => ((effective >> BigInt(bit)) & 1n) === 0n)?.[0];
}

/** The command that starts a runner's Node as the user. Binds what is there now. */
export function asUser(
  user: ServiceUser,
  confinement: Confinement,
  node: readonly string[],
): readonly string[] {
  const { stateDir, folder, permissions, name, company } = confinement;
  const copies = path.dirname(folder);
  const code = company ? [copies] : [folder, path.join(copies, 'node_modules')];
  const mayKeep = permissions.includes('own-files') || permissions.includes('files');
  const kept = mayKeep ? (company ?? [name]).map((one) => ownFolder({ stateDir, name: one })) : [];
  const shown = [...code, ...kept].filter((one) => existsSync(one));
  return viewed(
    user,
    stateDir,
    shown.map((one) => path.relative(stateDir, one)),
    node,
  );
}

function viewed(
  { uid, gid }: ServiceUser,
  stateDir: string,
  shown: readonly string[],
  command: readonly string[],
): readonly string[] {
  const given = [stateDir, String(uid), String(gid), ...shown, '--', ...command];
  return ['unshare', '--mount', '--propagation', 'slave', '/bin/sh', '-c', VIEW, 'sh', ...given];
}

/** Lets the user read a copy, which nobody but root may change. */
export async function showCopy(folder: string, user: ServiceUser): Promise<void> {
  const { gid, mode } = await lstat(folder);
  // The folder itself comes last.
  if (gid === user.gid && (mode & PERMISSIONS) === CODE_FOLDER) return;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await show(file, CODE_FOLDER, user);
    else if (entry.isFile()) {
      const isExecutable = ((await lstat(file)).mode & 0o100) !== 0;
      await show(file, isExecutable ? CODE_FOLDER : CODE_FILE, user);
    }
  }
  await show(folder, CODE_FOLDER, user);
}

async function show(file: string, mode: number, { gid }: ServiceUser): Promise<void> {
  await chown(file, 0, gid);
  await chmod(file, mode);
}

type Owned = Pick<Confinement, 'stateDir' | 'name'>;

/** By folder: two at once, to and fro, would leave some files with each. */
const turns = createKeyedQueue();

/** Makes the folder of what a plugin keeps, and gives it to whom its runner runs as. */
export async function giveOwnFolder(plugin: Owned, user: ServiceUser | undefined): Promise<void> {
  const folder = ownFolder(plugin);
  // Its parents are not the plugin's.
  await makeFolder(folder);
  if (process.geteuid?.() === 0) await turns.run(folder, () => giveTree(folder, user ?? ROOT));
}

/** By folder: the last to whom it was lent. */
const borrowers = new Map<string, object>();

/**
 * As `giveOwnFolder`. Returns what gives it back to root once that runner has ended, unless it was lent anew: so an
 * older version, whose runners are root's without capabilities, finds it as it was.
 */
export async function lendOwnFolder(
  plugin: Owned,
  user: ServiceUser | undefined,
): Promise<() => Promise<void>> {
  const folder = ownFolder(plugin);
  const borrower = {};
  borrowers.set(folder, borrower);
  await giveOwnFolder(plugin, user);
  return () =>
    turns.run(folder, async () => {
      if (user && borrowers.get(folder) === borrower) await giveTree(folder, ROOT);
    });
}
