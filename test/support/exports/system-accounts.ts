/**
 * Accounts of a machine of its own: what runs in it sees these in /etc, and PAM asks them. The files of this machine
 * stay as they are.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { until } from '../platform/wait.ts';
import type { Scratch } from '../platform/scratch-folder.ts';

const run = promisify(execFile);
const FILES = ['passwd', 'shadow', 'group'] as const;
/** $1: the folder of the files. */
const INSIDE = `for file in ${FILES.join(' ')}; do mount --bind "$1/$file" "/etc/$file"; done
touch "$1/seen"
exec sleep 3600`;

export interface Account {
  readonly name: string;
  readonly password: string;
  readonly uid: number;
  /** As in shadow(5): days since 1970 from which on the account is none. */
  readonly expires?: string;
  readonly isLocked?: boolean;
}

export class SystemAccounts {
  readonly #folder: string;
  #pid = 0;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async create(scratch: Scratch): Promise<SystemAccounts> {
    const accounts = new SystemAccounts(scratch.root);
    await accounts.set([], {});
    const machine = spawn(
      'unshare',
      ['--mount', '--propagation', 'slave', 'sh', '-ec', INSIDE, 'sh', scratch.root],
      { stdio: 'ignore' },
    );
    scratch.defer(() => machine.kill('SIGKILL'));
    accounts.#pid = machine.pid ?? 0;
    await until('the accounts are seen', () => existsSync(scratch.path('seen')), { timeoutMs: 10_000 });
    return accounts;
  }

  /** What runs the command with these accounts; for root alone. */
  machine(command: readonly string[]): readonly [command: string, ...args: string[]] {
    return ['nsenter', `--mount=/proc/${this.#pid}/ns/mnt`, ...command];
  }

  /** Beside those of this machine; in place of what was set before. Groups by name, with their members. */
  async set(
    accounts: readonly Account[],
    groups: Readonly<Record<string, readonly string[]>>,
  ): Promise<void> {
    const passwd = accounts.map(({ name, uid }) => `${name}:x:${uid}:4711::/nonexistent:/usr/sbin/nologin`);
    const shadow = await Promise.all(accounts.map(shadowLine));
    const group = Object.entries(groups).map(
      ([name, members], index) => `${name}:x:${47_110 + index}:${members.join()}`,
    );
    await this.#write('passwd', passwd);
    await this.#write('shadow', shadow);
    await this.#write('group', group);
  }

  /** In place: another file would not be the one that is seen in /etc. */
  async #write(file: (typeof FILES)[number], lines: readonly string[]): Promise<void> {
    const own = lines.map((line) => line.split(':')[0]);
    const machine = (await readFile(`/etc/${file}`, 'utf8'))
      .split('\n')
      .filter((line) => line !== '' && !own.includes(line.split(':')[0]));
    await writeFile(`${this.#folder}/${file}`, [...machine, ...lines, ''].join('\n'), {
      mode: file === 'shadow' ? 0o600 : 0o644,
    });
  }
}

async function shadowLine({ name, password, expires = '', isLocked = false }: Account): Promise<string> {
  const { stdout } = await run('openssl', ['passwd', '-6', password]);
  return `${name}:${isLocked ? '!' : ''}${stdout.trim()}:20000:0:99999:7::${expires}:`;
}
