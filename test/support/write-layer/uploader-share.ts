/**
 * A share for tests of the uploader: a real overlay over a plain folder, which is the NAS at the same time.
 * Times on that NAS are whole seconds, as many keep them. Taking out is done while the overlay is unmounted,
 * but where the test says `live`: then only marks are written anew, below a mounted overlay that remembers
 * the former ones.
 */
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pino } from 'pino';
import type {
  CleanRules,
  Clock,
  Conflict,
  LeavingEntry,
  Processes,
  RemoteEntry,
  RemoteFailure,
  RemoteFiles,
  RemoteHash,
  WriteLayer,
} from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { runShortCommand } from '../../../core/platform/processes/short-command.ts';
import type { Proof } from '../../../plugins/uploads/proof/same-content.ts';
import { settleUpper } from '../../../plugins/uploads/transfer/leaving/settle.ts';
import { ShareUploader } from '../../../plugins/uploads/transfer/share-uploads.ts';
import { runInShell } from '../platform/open-shell.ts';

/** The real clock: uploaders are driven by the test, not by time. */
export const clock: Clock = createClock();
/** Runs short commands, as the daemon does. */
export const processes: Pick<Processes, 'run'> = { run: (spec) => runShortCommand(spec, clock) };
/**
 * In memory where that can be had: what is written to the disk for good is not what these tests are about.
 */
const ROOM = process.env['MOUNTKEEPER_TEST_MEMORY'] ?? (existsSync('/dev/shm') ? '/dev/shm' : tmpdir());
const OPTIONS = 'index=off,nfs_export=off,redirect_dir=on';

/** Asked before and after each call of the remote and of the layer; may throw, or never settle. */
export type Fault = (call: string, when: 'before' | 'after') => Promise<void> | void;

/** One share in a folder of its own; `close` removes it. Needs root. */
export class TestShare {
  readonly root = mkdtempSync(join(ROOM, 'mk-uploads-'));
  readonly nas = join(this.root, 'nas');
  readonly upper = join(this.root, 'upper');
  readonly mount = join(this.root, 'mount');
  readonly records = join(this.root, 'records');
  readonly discarded = join(this.root, 'discarded');
  readonly conflicts: Conflict[] = [];
  precisionMs = 1_000;
  /** What the NAS has shown of its times, though it says otherwise. */
  shownMs = 0;
  /** The NAS shows when a file arrived, so many milliseconds off by its own clock, and takes no time. */
  ignoresTimesBy: number | undefined;
  /** The NAS tells a file's hash when it is asked for the file. */
  hasHashes = false;
  /** As over SFTP and SMB; `false`: as over WebDAV and S3. */
  leavesTaken = true;
  /** Another way to the folder that is the NAS. */
  files: RemoteFiles | undefined;
  /** What the mount has in listings that it read long ago, where the NAS has nothing by now. */
  stillShown: ReadonlyMap<string, RemoteEntry> = new Map();
  /** What the NAS has by now, and is in no listing that the mount has read. */
  notYetShown: ReadonlySet<string> = new Set();
  /** `remembers`: names are never dropped, so the kernel goes by the marks that it read first. */
  live: 'no' | 'remembers' | 'drops names' = 'no';
  /** What could not be brought back to the upper folder. */
  unrestored: ReadonlySet<string> = new Set();
  /** Brings the upper folder to the disk. */
  onDisk: (() => Promise<void>) | undefined;
  /** What has left it, and may come back. */
  resting: ReadonlySet<string> = new Set();
  #isMounted = false;

  constructor() {
    for (const folder of [this.nas, this.upper, this.mount, this.records, join(this.root, 'work')])
      mkdirSync(folder, { recursive: true });
  }

  /** A path that users see. */
  at(path: string): string {
    return join(this.mount, path);
  }

  /** As another client of the NAS does: a new file, `atS` seconds after the epoch. */
  othersWrite(path: string, content: string, atS = 1_710_000_000): void {
    rmSync(join(this.nas, path), { force: true });
    writeFileSync(join(this.nas, path), content);
    utimesSync(join(this.nas, path), atS, atS);
  }

  /** Mounts the overlay unless it is mounted. */
  up(): void {
    if (this.#isMounted) return;
    const folders = `lowerdir=${this.nas},upperdir=${this.upper},workdir=${join(this.root, 'work')}`;
    const options = `${folders},${OPTIONS},metacopy=on`;
    runInShell('mount', '-i', '-t', 'overlay', 'uploads-test', '-o', options, this.mount);
    this.#isMounted = true;
  }

  /** Unmounts the overlay, lazily. */
  down(): void {
    if (!this.#isMounted) return;
    runInShell('umount', '-i', '-l', this.mount);
    this.#isMounted = false;
  }

  /** Users see what is on the NAS now, as after a start. No uploader may run. */
  async renew(): Promise<void> {
    this.down();
    await this.settle();
    this.up();
  }

  /** Finishes what a killed uploader left, as each start does. */
  settle(): Promise<void> {
    return settleUpper(
      {
        upper: this.upper,
        records: this.records,
        remote: this.remote(),
        signal: new AbortController().signal,
      },
      processes,
    );
  }

  /** Unmounts it and removes its folder. */
  close(): void {
    this.down();
    rmSync(this.root, { recursive: true, force: true });
  }

  /** A new uploader that the test drives; `fault` is asked around each call it makes. */
  uploader(
    fault: Fault = () => undefined,
    more: {
      readonly isOpen?: () => ReadonlySet<string>;
      readonly clean?: CleanRules;
      readonly restMs?: number;
      readonly processes?: Pick<Processes, 'run'>;
      readonly proof?: Proof;
      readonly clock?: Clock;
      readonly onChange?: () => void;
    } = {},
  ): ShareUploader {
    return new ShareUploader({
      layer: guarded(this.#layer(more.isOpen ?? (() => new Set())), fault),
      remote: guarded(this.remote(), fault),
      writeBackMs: () => 0,
      transfers: () => 4,
      clock: more.clock ?? clock,
      processes: more.processes ?? processes,
      log: pino({ level: 'silent' }),
      onConflict: (conflict) => void this.conflicts.push(conflict),
      isSelfDriven: false,
      restMs: more.restMs ?? 0,
      // Whoever stands in for the processes sees each scan.
      ...(more.processes !== undefined && { fewEntries: 0 }),
      clean: more.clean,
      ...(more.onChange !== undefined && { onChange: more.onChange }),
      ...(more.proof !== undefined && { proof: () => more.proof! }),
    });
  }

  #layer(isOpen: () => ReadonlySet<string>): WriteLayer {
    const { nas } = this;
    const isShown = (path: string): boolean => !this.notYetShown.has(path);
    return {
      shareName: 'test',
      upper: this.upper,
      aside: join(this.root, 'aside'),
      discarded: this.discarded,
      records: this.records,
      openForWriting: async () => isOpen(),
      inUse: async () => new Set(),
      below: async (paths) => ({
        found: new Map(
          paths.map((path) => [
            path,
            (isShown(path) ? entryAt(join(nas, path)) : undefined) ?? this.stillShown.get(path),
          ]),
        ),
        failed: new Map(),
      }),
      listBelow: async (folders) => ({
        found: new Map(
          folders.map((folder) => [
            folder,
            listing(join(nas, folder))?.filter(({ name }) => isShown(join(folder, name))) ??
              this.#stillListed(folder),
          ]),
        ),
        failed: new Map(),
      }),
      ...(this.onDisk !== undefined && { onDisk: this.onDisk }),
      takeOut: async (entries) => this.#takeOut(entries),
      unrestored: () => this.unrestored,
      resting: async () => this.resting,
      rewriteMarks: async (entries) =>
        entries.filter((entry) => this.#takeOne(entry)).map(({ path }) => path),
    };
  }

  #stillListed(folder: string): RemoteEntry[] | undefined {
    if (this.stillShown.get(folder)?.kind !== 'folder') return undefined;
    return [...this.stillShown].filter(([path]) => dirname(path) === folder).map(([, entry]) => entry);
  }

  #takeOut(entries: readonly LeavingEntry[]): string[] {
    if (this.live !== 'no') return this.#remark(entries);
    this.down();
    const taken = entries.filter((entry) => this.#takeOne(entry)).map(({ path }) => path);
    this.up();
    return taken;
  }

  #remark(entries: readonly LeavingEntry[]): string[] {
    const isMoved = ({ nowAt, hasNoData }: LeavingEntry): boolean =>
      nowAt !== undefined || (hasNoData === true && this.live === 'drops names');
    const marked = entries.filter((entry) => isMoved(entry) && this.#takeOne(entry)).map(({ path }) => path);
    if (this.live === 'remembers' || marked.length === 0) return [];
    this.dropNames();
    return marked;
  }

  /** What the kernel remembers of names, and of those that were looked for in vain. */
  dropNames(): void {
    runInShell('mount', '-i', '-o', 'remount,rw', this.mount);
  }

  #takeOne({ path, kind, inode, changedNs, isOpaque, copy, nowAt, discardTo }: LeavingEntry): boolean {
    const full = join(this.upper, path);
    const stats = lstatSync(full, { bigint: true, throwIfNoEntry: false });
    if (kind === 'whiteout') return this.#takeWhiteout(path, copy !== undefined);
    if (stats?.ino !== inode || stats.ctimeNs !== changedNs) return false;
    if (discardTo !== undefined) {
      mkdirSync(dirname(discardTo), { recursive: true });
      renameSync(full, discardTo);
      return true;
    }
    if (nowAt !== undefined) setMark(full, '-n', 'trusted.overlay.redirect', '-v', `/${nowAt}`);
    else if (isOpaque) setMark(full, '-x', 'trusted.overlay.opaque');
    else return remove(full, kind);
    return true;
  }

  #takeWhiteout(path: string, isKept: boolean): boolean {
    const isAgreed = isKept || !existsSync(join(this.nas, path));
    if (
      isAgreed &&
      lstatSync(join(this.upper, path), { throwIfNoEntry: false })?.isCharacterDevice() === true
    )
      unlinkSync(join(this.upper, path));
    return isAgreed;
  }

  /** The folder that is the NAS, or what the test put in its place. */
  remote(): RemoteFiles {
    if (this.files !== undefined) return this.files;
    const at = (path: string): string => join(this.nas, path);
    const precisionMs = (): number => Math.max(this.precisionMs, this.shownMs);
    const upload = async (local: string, path: string): Promise<void> => {
      const beside = join(this.root, `part-${Math.random()}`);
      copyFileSync(local, beside);
      const second = Math.floor(Number(statSync(local, { bigint: true }).mtimeNs / 1_000_000n) / 1_000);
      const shown = this.ignoresTimesBy === undefined ? second : (clock.now() + this.ignoresTimesBy) / 1_000;
      utimesSync(beside, shown, shown);
      if (lstatSync(at(path), { throwIfNoEntry: false })?.isDirectory() === true)
        throw refusal(`${path} is a folder`);
      renameSync(beside, at(path));
    };
    return {
      get precisionMs() {
        return precisionMs();
      },
      notePrecision: (ms) => void (this.shownMs = Math.max(this.shownMs, ms)),
      leavesTaken: this.leavesTaken,
      stat: async (path) => {
        const entry = entryAt(at(path));
        if (!this.hasHashes || entry?.kind !== 'file') return entry;
        return { ...entry, version: { ...entry.version, hash: hashOf(at(path)) } };
      },
      readBack: async (path) => hashOf(at(path)),
      list: async (folder) => listing(at(folder)),
      clearLeftovers: async () => undefined,
      upload,
      uploadNew: async (local, path) => {
        if (lstatSync(at(path), { throwIfNoEntry: false })?.isFile() === true) return false;
        mkdirSync(dirname(at(path)), { recursive: true });
        await upload(local, path);
        return true;
      },
      moveFile: async (from, to) => renameChecked(at(from), at(to), false),
      moveFolder: async (from, to) => renameChecked(at(from), at(to), true),
      deleteFile: async (path) => rmSync(at(path), { force: true }),
      makeFolder: async (path) => void mkdirSync(at(path), { recursive: true }),
      removeFolder: async (path) => {
        if (existsSync(at(path))) rmdirSync(at(path));
      },
      forget: async () => undefined,
    };
  }
}

/** False for a folder that holds something. */
function remove(full: string, kind: LeavingEntry['kind']): boolean {
  if (kind === 'file') unlinkSync(full);
  else if (readdirSync(full).length > 0) return false;
  else rmdirSync(full);
  return true;
}

function setMark(folder: string, ...change: string[]): void {
  runInShell('setfattr', '-h', ...change, folder);
}

function renameChecked(from: string, to: string, isFolder: boolean): void {
  if (lstatSync(from).isDirectory() !== isFolder) throw refusal(`${from} is of another kind`);
  if (existsSync(to)) throw refusal(`${to} is in the way`);
  renameSync(from, to);
}

/** An error of the remote: it has answered, or it is silent. */
export function refusal(message: string, remote: 'answers' | 'silent' = 'answers'): RemoteFailure {
  return Object.assign(new Error(message), { remote });
}

function entryAt(path: string): RemoteEntry | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (stats === undefined) return undefined;
  return stats.isDirectory()
    ? { name, kind: 'folder' }
    : { name, kind: 'file', version: { bytes: stats.size, modifiedMs: stats.mtimeMs } };
}

function hashOf(path: string): RemoteHash {
  return { kind: 'md5', value: createHash('md5').update(readFileSync(path)).digest('hex') };
}

function listing(folder: string): RemoteEntry[] | undefined {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  return readdirSync(folder)
    .map((name) => entryAt(join(folder, name)))
    .filter((entry) => entry !== undefined);
}

/** Asks the fault around each call that waits. */
function guarded<T extends object>(target: T, fault: Fault): T {
  return new Proxy(target, {
    get: (object, name, receiver) => {
      const value: unknown = Reflect.get(object, name, receiver);
      if (
        typeof value !== 'function' ||
        name === 'nameProblem' ||
        name === 'unrestored' ||
        name === 'resting' ||
        name === 'notePrecision'
      )
        return value;
      const call = name === 'uploadNew' ? 'upload' : String(name);
      return async (...args: unknown[]) => {
        await fault(call, 'before');
        const result: unknown = await (value as (...all: unknown[]) => unknown).apply(object, args);
        await fault(call, 'after');
        return result;
      };
    },
  });
}

/** Path → content, `/` for a folder. */
export function treeOf(folder: string, path = ''): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(join(folder, path)).sort()) {
    // Folders on a detour are on the NAS for a moment.
    if (name.startsWith('.mountkeeper-moving-')) continue;
    const one = path === '' ? name : `${path}/${name}`;
    const stats = lstatSync(join(folder, one));
    if (stats.isDirectory())
      for (const [key, value] of [[one, '/'] as const, ...treeOf(folder, one)]) found.set(key, value);
    else found.set(one, stats.isFile() ? readFileSync(join(folder, one), 'latin1') : '?');
  }
  return found;
}

/** Longer than what a folder must have been still for until a look at it can be believed. */
export const STILL_MS = 25;

/** Looks and works until there is nothing to do; resolves with the number of looks. */
export async function settle(uploader: ShareUploader, most = 40, restMs = 0): Promise<number> {
  for (let looks = 1; looks <= most; looks += 1) {
    if (restMs > 0) await clock.sleep(restMs);
    uploader.flush();
    const figures = await uploader.look(new AbortController().signal);
    await uploader.settled();
    if (figures.dirtyFiles === 0 && !uploader.isLookDue) return looks;
  }
  throw new Error(`not settled: ${JSON.stringify(uploader.queue(), undefined, 1)}`);
}

/** Works as long as there is something to do; what waits then: path → state and reason. */
export async function leftWaiting(share: TestShare): Promise<Readonly<Record<string, string>>> {
  const uploader = share.uploader();
  await settle(uploader, 6, STILL_MS).catch(() => undefined);
  const queue = uploader.queue();
  await uploader.stop();
  return Object.fromEntries(queue.map(({ path, state, reason }) => [path, `${state}: ${reason}`]));
}
