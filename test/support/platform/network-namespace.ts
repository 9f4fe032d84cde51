/**
 * Runs a test file once more in a network and a mount table of its own, beside which a second machine can be
 * set up: nothing that is announced or hidden there reaches this machine's own networks and folders. Needs
 * root, as the servers do.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Scratch } from './scratch-folder.ts';
import { until, within } from './wait.ts';

const MARK = 'MOUNTKEEPER_TEST_NAMESPACE';
/** True in the process that runs in namespaces of its own. */
export const isInNamespace = process.env[MARK] === 'yes';

/** This machine and the other one. */
export const HERE = '192.0.2.1';
/** The address of the other machine. */
export const THERE = '192.0.2.2';
/** The network of both: TEST-NET-1 of RFC 5737. */
export const NETWORK = '192.0.2.0/24';
/** The name of the network card on both. */
export const CARD = 'lan0';

export interface NamespaceResult {
  readonly code: number | null;
  readonly output: string;
  /** How many tests passed and were left out, by the runner's own last lines. */
  readonly passed: number;
  readonly skipped: number;
}

/** What the tests in the file said; resolves with the exit code of their process. */
export async function runInNamespace(moduleUrl: string, timeoutMs: number): Promise<NamespaceResult> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(
    'unshare',
    [
      '--net',
      '--mount',
      '--propagation',
      'private',
      '--fork',
      '--kill-child',
      process.execPath,
      fileURLToPath(moduleUrl),
    ],
    { env: { ...env, [MARK]: 'yes' }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (output += piece.toString()));
  try {
    await within(`the end of ${moduleUrl} in a network of its own`, timeoutMs, once(child, 'close'));
  } finally {
    child.kill('SIGKILL');
  }
  const last = (what: string): number =>
    Number(new RegExp(`^(?:#|ℹ) ${what} (\\d+)$`, 'm').exec(output)?.[1]);
  return { code: child.exitCode, output, passed: last('pass'), skipped: last('skipped') };
}

/** A second machine on one cable: a network of its own in which commands are run. */
export interface Peer {
  /** Put before a command and its arguments. */
  readonly prefix: readonly string[];
}

/** Starts the other machine and connects it by a virtual cable. Ended with the scratch folder. */
export async function connectPeer(scratch: Scratch): Promise<Peer> {
  const run = promisify(execFile);
  const machine = spawn('unshare', ['--net', '--kill-child', '--fork', 'sleep', '600'], { stdio: 'ignore' });
  scratch.defer(() => machine.kill('SIGKILL'));
  const target = await until(
    'the second machine has a network',
    async () => {
      const { stdout } = await run('pgrep', ['-P', String(machine.pid)]).catch(() => ({ stdout: '' }));
      return stdout.trim();
    },
    { timeoutMs: 20_000 },
  );
  const prefix = ['nsenter', '-t', target, '-n'];
  await run('ip', ['link', 'set', 'lo', 'up']);
  await run('ip', ['link', 'add', CARD, 'type', 'veth', 'peer', 'name', CARD, 'netns', target]);
  for (const [before, address] of [
    [[], HERE],
    [prefix, THERE],
  ] as const) {
    const [command = 'ip', ...rest] = [...before, 'ip'];
    await run(command, [...rest, 'link', 'set', 'lo', 'up']);
    await run(command, [...rest, 'addr', 'add', `${address}/24`, 'dev', CARD]);
    await run(command, [...rest, 'link', 'set', CARD, 'up']);
  }
  return { prefix };
}

/**
 * Avahi on the other machine, as a Linux desktop has it, on a message bus of its own. Returns the environment
 * of its clients.
 */
export async function startAvahi(scratch: Scratch, peer: Peer): Promise<Readonly<Record<string, string>>> {
  const room = scratch.path('avahi');
  await mkdir(room);
  await writeFile(
    `${room}/bus.conf`,
    `<busconfig><listen>unix:path=${room}/bus</listen><auth>EXTERNAL</auth><policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>`,
  );
  await writeFile(
    `${room}/avahi.conf`,
    `[server]\nuse-ipv4=yes\nuse-ipv6=no\nallow-interfaces=${CARD}\nhost-name=desktop\n` +
      '[publish]\ndisable-publishing=yes\n',
  );
  const env = { PATH: process.env['PATH'] ?? '', DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${room}/bus` };
  const keep = (command: string, args: readonly string[]): void => {
    const child = spawn(command, args, { env, stdio: 'ignore' });
    scratch.defer(() => child.kill('SIGKILL'));
  };
  keep('dbus-daemon', [`--config-file=${room}/bus.conf`, '--nofork', '--nopidfile']);
  await until('the message bus is there', () => existsSync(`${room}/bus`), { timeoutMs: 20_000 });
  // It writes its process id below /run, which is another one for it alone.
  const avahi =
    'mount -t tmpfs none /run && mkdir /run/avahi-daemon && ' +
    `exec ${peer.prefix.join(' ')} avahi-daemon --file ${room}/avahi.conf --no-drop-root ` +
    '--no-chroot --no-rlimits';
  keep('unshare', ['--mount', '--propagation', 'private', '--kill-child', '--fork', 'sh', '-c', avahi]);
  return env;
}
