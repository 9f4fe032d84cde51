/**
 * What people do with renamed folders before the NAS has them: shell commands in a folder with the entries of `START`.
 * Each must have the same outcome on the NAS as on a local disk.
 */

import { seeded } from '../config/random-documents.ts';
import type { Random } from '../config/random-documents.ts';

/** Path → size in bytes. */
export const START: Readonly<Record<string, number>> = {
  'A/f': 100,
  'A/g': 0,
  'A/y': 7_000,
  'B/x': 200,
  'B/z': 201,
  'E/s/q': 300,
  'E/r': 301,
  t: 400,
};

/**
 * Each was wrong once: what was renamed into or within a folder was looked for below before its mark was renewed, or
 * was back by its former path in a folder that had come in the place of its own.
 */
export const ONCE_WRONG: readonly string[] = [
  'mv A C; mv B D; mv D/x C/f; sleep 4; rm -r D',
  'mv A C; mv B D; mv D/x C/f',
  'mv A/f k; mv A/y A/f; mv A C',
  'rm A/f; mv A/y A/f; mv A C',
  'mv A C; mv -T C/y C/f',
  'mv A C; rm C/f; mv C/y C/f',
  'mv A C; mv t C/f',
  'mv A C; mv C/f C/k; mv t C/f',
  'mv A C; mv C/f C/k; mv t C/f; mv C D',
  'mv A/f A/k; mv A/y A/f; mv A C',
  'mv A C; mv E D; mv D/s/q C/f',
  'mv A C; sleep 0.4; printf x >> C/f; mv C D',
  'mv E/s/q B/q && rmdir E/s && mv B E/s',
  'mv E/s/q B/q && mv -T B E/s',
];

const PAUSES = ['0.1', '0.3', '0.5', '0.8', '1.2', '2', '3', '5'];

/** So many sequences of so many commands, drawn by the seed. */
export function drawnSequences(seed: number, count: number, length: number): readonly string[] {
  const next = seeded(seed);
  return Array.from({ length: count }, () => new Names(next).sequence(length));
}

/** Follows which names there are, so that each command finds what it asks for. */
class Names {
  readonly #next: Random;
  #files: readonly string[] = Object.keys(START);
  #folders: readonly string[] = ['A', 'B', 'E', 'E/s'];
  /** Names that are free again: programs give them back, as when a folder is replaced by a new one. */
  #former: readonly string[] = [];
  #count = 0;

  constructor(next: Random) {
    this.#next = next;
  }

  sequence(length: number): string {
    const commands: string[] = [];
    while (commands.length < length && this.#files.length + this.#folders.length > 0) {
      const command = this.#pick([
        () => this.#renameFolder(),
        () => this.#moveFolder(),
        () => this.#moveFile(),
        () => this.#replace(),
        () => this.#remove(),
        () => this.#removeFolder(),
        () => this.#append(),
        () => this.#swap(),
      ])();
      if (command === undefined) continue;
      commands.push(command);
    }
    // Joined, the uploader hardly ever looks in between.
    const between = (): string => this.#pick(['; ', ' && ', ' && ', `; sleep ${this.#pick(PAUSES)}; `]);
    return commands.reduce((all, command) => all + between() + command);
  }

  #pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.#next() * all.length)]!;
  }

  /** A name in a folder that nothing has: the one that `from` has in its own, one that is free again, or a new one. */
  #free(folder: string, from: string): string {
    const taken = new Set([...this.#files, ...this.#folders]);
    const isIn = (path: string): boolean => path.slice(0, Math.max(path.lastIndexOf('/'), 0)) === folder;
    const kept = `${folder === '' ? '' : `${folder}/`}${from.slice(from.lastIndexOf('/') + 1)}`;
    const free = [kept, ...this.#former.filter(isIn)].filter((path) => path !== from && !taken.has(path));
    if (free.length > 0 && this.#next() < 0.5) return this.#pick(free);
    this.#count += 1;
    return `${folder === '' ? '' : `${folder}/`}n${this.#count}`;
  }

  #carry(from: string, to: string): void {
    this.#former = [...this.#former, from];
    const along = (path: string): string =>
      path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
    this.#files = this.#files.map(along);
    this.#folders = this.#folders.map(along);
  }

  #drop(path: string): void {
    this.#former = [...this.#former, path];
    const stays = (one: string): boolean => one !== path && !one.startsWith(`${path}/`);
    this.#files = this.#files.filter(stays);
    this.#folders = this.#folders.filter(stays);
  }

  #renameFolder(): string | undefined {
    if (this.#folders.length === 0) return undefined;
    const from = this.#pick(this.#folders);
    const to = this.#free(from.includes('/') ? from.slice(0, from.lastIndexOf('/')) : '', from);
    this.#carry(from, to);
    return `mv ${from} ${to}`;
  }

  #moveFolder(): string | undefined {
    if (this.#folders.length === 0) return undefined;
    const from = this.#pick(this.#folders);
    const others = this.#folders.filter((one) => one !== from && !one.startsWith(`${from}/`));
    if (others.length === 0) return undefined;
    const to = this.#free(this.#pick(others), from);
    this.#carry(from, to);
    return `mv ${from} ${to}`;
  }

  #moveFile(): string | undefined {
    if (this.#files.length === 0) return undefined;
    const from = this.#pick(this.#files);
    const to = this.#free(this.#pick([...this.#folders, '']), from);
    this.#carry(from, to);
    return `mv ${from} ${to}`;
  }

  #replace(): string | undefined {
    if (this.#files.length < 2) return undefined;
    const [from, to] = [this.#pick(this.#files), this.#pick(this.#files)];
    if (from === to) return undefined;
    this.#drop(from);
    return `mv ${from} ${to}`;
  }

  #remove(): string | undefined {
    if (this.#files.length === 0) return undefined;
    const path = this.#pick(this.#files);
    this.#drop(path);
    return `rm ${path}`;
  }

  #removeFolder(): string | undefined {
    if (this.#folders.length === 0) return undefined;
    const path = this.#pick(this.#folders);
    this.#drop(path);
    return `rm -r ${path}`;
  }

  #append(): string | undefined {
    if (this.#files.length === 0) return undefined;
    return `printf ${Math.floor(this.#next() * 1e6)} >> ${this.#pick(this.#files)}`;
  }

  #swap(): string | undefined {
    if (this.#files.length < 2) return undefined;
    const [one, other] = [this.#pick(this.#files), this.#pick(this.#files)];
    return one === other ? undefined : `mv ${one} aside && mv ${other} ${one} && mv aside ${other}`;
  }
}
