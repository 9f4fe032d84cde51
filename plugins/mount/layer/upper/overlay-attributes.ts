/**
 * Reads the attributes that overlayfs stores on folders of the upper layer, to find the lower path of a
 * path of the share.
 */
import { lstat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import type { BigIntStats } from 'node:fs';
import type { Processes, ShortCommandResult } from 'mountkeeper';

export interface FolderMarks {
  /** Nothing of the lower folder is visible. */
  readonly isOpaque: boolean;
  /** In the kernel's notation: a path from the root with a leading slash, or a name in the same folder. */
  readonly redirect?: string | undefined;
}

const ASK_TIMEOUT_MS = 10_000;
const MAX_KEPT = 10_000;
const FOLDERS_AT_ONCE = 200;
/** getfattr escapes some characters; folders with such names are queried one by one. */
const PLAIN = /^[^\\\p{Cc}]*$/u;

export class UpperMarks {
  readonly #upper: string;
  readonly #processes: Pick<Processes, 'run'>;
  /** By inode and ctime, which changes with the attributes. */
  readonly #kept = new Map<string, FolderMarks>();

  constructor(upper: string, processes: Pick<Processes, 'run'>) {
    this.#upper = upper;
    this.#processes = processes;
  }

  /**
   * The path of this path's content in the lower layers; undefined when nothing of them is visible there.
   * The attributes of the path itself count only with `isInside`, because they concern its entries.
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
      // Not in the upper layer, so nothing below it is either.
      if (!stats) return posix.join(lower, ...names.slice(index + 1));
      if (!stats.isDirectory()) return undefined;
      const marks = await this.of(upper, stats);
      if (marks.redirect !== undefined)
        lower = marks.redirect.startsWith('/')
          ? marks.redirect.slice(1)
          : posix.join(posix.dirname(lower), marks.redirect);
      if (marks.isOpaque) return undefined;
    }
    return lower;
  }

  /**
   * Reads the attributes of all ancestors of these paths with few processes; `lowerPath` reads the missing
   * ones.
   */
  async prepare(paths: readonly string[]): Promise<void> {
    const unknown: { readonly key: string; readonly folder: string }[] = [];
    for (const folder of new Set(paths.flatMap(foldersAbove))) {
      const stats = await lstat(join(this.#upper, folder), { bigint: true }).catch(missing);
      if (PLAIN.test(folder) && stats?.isDirectory() === true && !this.#kept.has(keyOf(stats)))
        unknown.push({ key: keyOf(stats), folder });
    }
    for (let start = 0; start < unknown.length; start += FOLDERS_AT_ONCE) {
      const some = unknown.slice(start, start + FOLDERS_AT_ONCE);
      const { code, stdout } = await this.#getfattr(some.map(({ folder }) => folder));
      // One of them is gone: they are queried one by one.
      if (code !== 0) return;
      const blocks = new Map(
        stdout.split('\n\n').map((block) => [/^# file: (.*)$/m.exec(block)?.[1], block]),
      );
      for (const { key, folder } of some)
        this.#keep(key, marksIn(blocks.get(join(this.#upper, folder)) ?? ''));
    }
  }

  async of(folder: string, stats: BigIntStats): Promise<FolderMarks> {
    const key = keyOf(stats);
    const known = this.#kept.get(key);
    if (known) return known;
    const { code, stdout, stderr } = await this.#getfattr([folder]);
    if (code !== 0)
      throw new Error(`the marks of ${join(this.#upper, folder)} cannot be read: ${stderr.trim()}`);
    return this.#keep(key, marksIn(stdout));
  }

  #keep(key: string, marks: FolderMarks): FolderMarks {
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(key, marks);
    return marks;
  }

  #getfattr(folders: readonly string[]): Promise<ShortCommandResult> {
    const args = [
      '-h',
      '--absolute-names',
      '-e',
      'base64',
      '-d',
      '-m',
      '^trusted\\.overlay\\.(opaque|redirect)$',
      '--',
    ];
    return this.#processes.run({
      command: 'getfattr',
      args: [...args, ...folders.map((folder) => join(this.#upper, folder))],
      env: { LC_ALL: 'C' },
      timeoutMs: ASK_TIMEOUT_MS,
    });
  }
}

function keyOf({ ino, ctimeNs }: BigIntStats): string {
  return `${ino} ${ctimeNs}`;
}

/** `a/b/c` → `a/b`, `a`. */
function foldersAbove(path: string): string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join('/'));
}

function marksIn(text: string): FolderMarks {
  return { isOpaque: valueOf(text, 'opaque') === 'y', redirect: valueOf(text, 'redirect') };
}

/** `trusted.overlay.redirect=0sL2E=` */
function valueOf(text: string, name: string): string | undefined {
  const encoded = new RegExp(`^trusted\\.overlay\\.${name}=0s(.*)$`, 'm').exec(text)?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString();
}

function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
}
