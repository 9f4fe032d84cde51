/**
 * A machine of its own with a real systemd: namespaces, a control group, and a root folder whose lower layer is this
 * machine's unless told otherwise, so that all its packages are there and nothing that happens in it is seen outside.
 * Needs root.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CONTROL_GROUPS } from '../../runner/skips.ts';
import { run } from './build-packages.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { onCut, spawnTied } from './when-cut.ts';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const NODES = 'null zero full random urandom tty fuse';

/** $1: the control group; $2: the new root; $3: what mounts it. */
const BOOT = `
set -e
echo $$ >"$1/cgroup.procs"
exec unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child --propagation private sh -ec '
  ip link set lo up
  # A LAN of its own. With loopback alone NFS-Ganesha finds no address that it may listen at, and nmbd waits for one.
  ip link add lan0 type veth peer name lan1
  ip address add 192.0.2.7/24 dev lan0
  ip link set lan0 up
  ip link set lan1 up
  root=$1
  eval "$2"
  mount -t proc proc $root/proc
  mount -t sysfs -o ro sysfs $root/sys
  mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs $root/run
  mount -t tmpfs tmpfs $root/tmp
  mount -t tmpfs -o mode=755 tmpfs $root/dev
  for node in ${NODES}; do touch $root/dev/$node; mount --bind /dev/$node $root/dev/$node; done
  mkdir $root/dev/pts $root/dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts
  ln -s pts/ptmx $root/dev/ptmx
  ln -s /proc/self/fd $root/dev/fd
  mount -t tmpfs tmpfs $root/dev/shm
  mkdir -p $root/run/outside
  cd $root
  pivot_root . run/outside
  umount -l /run/outside
  exec env -i container=mountkeeper-test PATH=${PATH} /lib/systemd/systemd --log-target=console \\
    systemd.unified_cgroup_hierarchy=1 </dev/null
' sh "$2" "$3"
`;

export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Folders of a test run in memory: layers of machines, whose control groups have the same name before theirs. */
const MEMORY = process.env['MOUNTKEEPER_TEST_MEMORY'] ?? '/dev/shm';

/** Removes the control groups of machines whose layers were in this folder, once their processes have ended. */
export async function removeControlGroups(memory: string): Promise<void> {
  if (CONTROL_GROUPS === undefined) return;
  const own = join(CONTROL_GROUPS, `${basename(memory)}-*`);
  await run('find', [CONTROL_GROUPS, '-depth', '-type', 'd', '-path', own, '-exec', 'rmdir', '{}', ';']);
}

export class SystemdMachine {
  readonly #root: string;
  readonly #mountRoot: string;
  readonly #group: string;
  #host: ChildProcess | undefined;
  #init = 0;

  private constructor(root: string, mountRoot: string, group: string) {
    this.#root = root;
    this.#mountRoot = mountRoot;
    this.#group = group;
  }

  /**
   * Boots one. What it writes is kept in memory; the services that are switched on here are off in it. With a folder of
   * another system as the lower layer it is that system, as it is.
   */
  static async boot(scratch: Scratch, lower = '/'): Promise<SystemdMachine> {
    if (CONTROL_GROUPS === undefined) throw new Error('there are no control groups of version 2 here');
    const group = await mkdtemp(join(CONTROL_GROUPS, `${basename(MEMORY)}-`));
    const layers = await mkdtemp(join(MEMORY, 'mk-machine-'));
    scratch.defer(() => rm(layers, { recursive: true, force: true }));
    for (const name of ['upper', 'work', 'cache']) await mkdir(join(layers, name));
    const root = scratch.path('machine');
    await mkdir(root);
    const switchOff =
      '; [ -e $root/etc/is-machine ] || ' +
      'rm -rf $root/etc/systemd/system/*.wants $root/etc/rc?.d $root/usr/sbin/policy-rc.d ' +
      // Each installation would index all manual pages anew, for three seconds of processor time.
      '$root/var/lib/man-db/auto-update; ' +
      'touch $root/etc/is-machine';
    // What users write needs a disk of its own: an overlay takes no upper folder on another one. Of another system
    // it has what apt has fetched, too: there may be no network to fetch it from again.
    const kept = lower === '/' ? 'debconf' : 'debconf apt';
    const disk =
      `; for kept in ${kept}; do [ -e ${layers}/cache/$kept ] || cp -a $root/var/cache/$kept ${layers}/cache/; done` +
      `; mount --bind ${layers}/cache $root/var/cache`;
    const mountRoot =
      `mount -t overlay -o lowerdir=${lower},upperdir=${layers}/upper,workdir=${layers}/work overlay $root` +
      (lower === '/' ? switchOff : '') +
      disk;
    const machine = new SystemdMachine(root, mountRoot, group);
    scratch.defer(async () => {
      await machine.#powerCut();
      await run('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']);
    });
    const isOver = onCut(() => {
      machine.#host?.kill('SIGKILL');
      rmSync(layers, {
        recursive: true,
        force: true,
        maxRetries: 10,
        retryDelay: 100,
      });
    });
    scratch.defer(isOver);
    await machine.#start();
    return machine;
  }

  async #start(): Promise<void> {
    const boot = ['-c', BOOT, 'sh', this.#group, this.#root, this.#mountRoot];
    const host = spawnTied('sh', boot, ['ignore', 'ignore', 'inherit']);
    this.#host = host;
    await until(
      'the machine has booted',
      async () => {
        if (host.exitCode !== null) throw new Error('the machine did not boot');
        const children = await readFile(
          `/proc/${String(host.pid)}/task/${String(host.pid)}/children`,
          'utf8',
        );
        this.#init = Number(children.trim()) || 0;
        if (this.#init === 0) return false;
        const state = await this.run('systemctl is-system-running');
        return ['running', 'degraded'].includes(state.stdout.trim());
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );
  }

  /** All processes end at once, and systemd begins anew on the same disk. */
  async restartAfterPowerCut(): Promise<void> {
    await this.#powerCut();
    await this.#start();
  }

  async #powerCut(): Promise<void> {
    if (!this.#host || this.#host.exitCode !== null || this.#host.signalCode !== null) return;
    const ended = once(this.#host, 'exit');
    this.#host.kill('SIGKILL');
    await ended;
    await until(
      'all processes of the machine have ended',
      async () => (await run('cat', [join(this.#group, 'cgroup.events')])).stdout.includes('populated 0'),
      { timeoutMs: 30_000, everyMs: 50 },
    );
  }

  /** Copies a file of this machine into it. */
  put(file: string, path: string): Promise<void> {
    return copyFile(file, `/proc/${String(this.#init)}/root${path}`);
  }

  /** Runs words of the shell inside, as root. Never rejects because of what they end with. */
  run(script: string, timeoutMs = 120_000): Promise<Said> {
    const args = ['--target', String(this.#init), '--all', '/usr/bin/env', '-i', `PATH=${PATH}`];
    return run('nsenter', [...args, 'HOME=/root', 'sh', '-c', script], {
      timeout: timeoutMs,
      maxBuffer: 16 * 1024 * 1024,
    }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code?: number; stdout: string; stderr: string }) => ({
        code: error.code ?? -1,
        stdout: error.stdout,
        stderr: error.stderr,
      }),
    );
  }

  /** The same; what fails rejects with its output. Returns what was printed, without the last line's end. */
  async must(script: string, timeoutMs?: number): Promise<string> {
    const said = await this.run(script, timeoutMs);
    if (said.code !== 0) throw new Error(`${script}: ${String(said.code)}\n${said.stdout}\n${said.stderr}`);
    return said.stdout.trimEnd();
  }
}
