/** What overlayfs notes on folders of the upper layer, and where a path of the share therefore lies below. */
import { lstat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { BigIntStats } from 'node:fs';
import type { Processes } from 'mountkeeper';

export interface FolderMarks {
  /** Nothing that lies below shows. */
  readonly isOpaque: boolean;
  /** As the kernel notes it: from the root with a slash before, or a name in the same folder. */
  readonly redirect?: string | undefined;
}

const ASK_TIMEOUT_MS = 10_000;
const MAX_KEPT = 10_000;

export class UpperMarks {
  readonly #upper: string;
  readonly #processes: Pick<Processes, 'run'>;
  /** By inode and time of change: a folder's marks change with that. */
  readonly #kept = new Map<string, FolderMarks>();

  constructor(upper: string, processes: Pick<Processes, 'run'>) {
    this.#upper = upper;
    this.#processes = processes;
  }

  /**
   * Where the lower layers hold what is below this path; undefined when nothing there shows. Marks of the path itself count only
   * with `isInside`: they concern what is in the folder.
   */
  async lowerPath(path: string, { isInside }: { readonly isInside: boolean }): Promise<string | undefined> {
    const names = path === '' ? [] : path.split('/');
    let lower = '';
    let upper = '';
    for (const [index, name] of names.entries()) {
      upper = posix.join(upper, name);
      lower = posix.join(lower, name);
      if (index === names.length - 1 && !isInside) return lower;
      const stats = await lstat(join(this.#upper, upper), { bigint: true }).catch(missing);
      // Not in the upper layer, so nothing in it is.
      if (!stats) return posix.join(lower, ...names.slice(index + 1));
      if (!stats.isDirectory()) return undefined;
      const marks = await this.of(upper, stats);
      if (marks.redirect !== undefined) lower = marks.redirect.startsWith('/') ? marks.redirect.slice(1) : posix.join(posix.dirname(lower), marks.redirect);
      if (marks.isOpaque) return undefined;
    }
    return lower;
  }

  async of(folder: string, stats: BigIntStats): Promise<FolderMarks> {
    const key = `${stats.ino} ${stats.ctimeNs}`;
    const known = this.#kept.get(key);
    if (known) return known;
    const marks = await this.#ask(join(this.#upper, folder));
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, marks);
    return marks;
  }

  async #ask(folder: string): Promise<FolderMarks> {
    const args = ['-h', '--absolute-names', '-e', 'base64', '-d', '-m', '^trusted\\.overlay\\.(opaque|redirect)$', '--', folder];
    const { code, stdout, stderr } = await this.#processes.run({ command: 'getfattr', args, timeoutMs: ASK_TIMEOUT_MS });
    if (code !== 0) throw new Error(`the marks of ${folder} cannot be read: ${stderr.trim()}`);
    return { isOpaque: valueOf(stdout, 'opaque') === 'y', redirect: valueOf(stdout, 'redirect') };
  }
}

/** `trusted.overlay.redirect=0sL2E=` */
function valueOf(text: string, name: string): string | undefined {
  const encoded = new RegExp(`^trusted\\.overlay\\.${name}=0s(.*)$`, 'm').exec(text)?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString();
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}
