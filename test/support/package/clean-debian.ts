/** A Debian with nothing but what every Debian has, of the release and from the mirror of this machine's own apt. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { ARCHITECTURE, run } from './build-packages.ts';

const LIMIT_MS = 1_500_000;

/** The mirror and the release that this machine's own apt is set to. */
async function ownDebian(): Promise<{ readonly mirror: string; readonly release: string }> {
  const format = '$(REPO_URI) $(LABEL)';
  const { stdout } = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']);
  const line = stdout.split('\n').find((one) => / Debian$|\/debian\/? /.test(one));
  const [, release = 'stable'] =
    /^VERSION_CODENAME=(\w+)/m.exec(await readFile('/etc/os-release', 'utf8')) ?? [];
  assert.ok(line, 'apt is set to a mirror of Debian');
  return { mirror: line.split(' ')[0] ?? '', release };
}

/** Makes it in a folder that does not exist yet, with these packages beside the smallest set. */
export async function cleanDebian(root: string, ...packages: readonly string[]): Promise<void> {
  const { mirror, release } = await ownDebian();
  const also = packages.length > 0 ? [`--include=${packages.join(',')}`] : [];
  await run('debootstrap', ['--variant=minbase', `--arch=${ARCHITECTURE}`, ...also, release, root, mirror], {
    timeout: LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
  });
}

/**
 * Runs words of the shell in it, with this machine's devices and network, in processes that all end with the words.
 * Rejects with the output when they end with another code than 0; resolves to what was printed.
 */
export async function inside(root: string, script: string): Promise<string> {
  const setUp = `mount --make-rprivate /; mount --bind /dev "$0/dev"; exec chroot "$0" sh -c "$1"`;
  const args = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', setUp, root, script];
  const env = { PATH: process.env['PATH'], DEBIAN_FRONTEND: 'noninteractive' };
  return (await run('unshare', args, { env, timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 })).stdout;
}
