import { stat } from 'node:fs/promises';
import type { SmbUser } from '../config.ts';

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
