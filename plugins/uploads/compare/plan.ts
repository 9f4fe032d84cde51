/**
 * The heart of the uploader: what has to be done so that the remote becomes what users see. A pure function of a look at the
 * upper folder and of the records; it asks nobody and changes nothing, and what it says can be done in any number of tries.
 *
 * - A file that no record proves goes up. A whiteout, and a recorded place that nothing in the upper folder stands for any
 *   more, is deleted. A folder with the mark of a rename is moved. A folder that users made is made.
 * - What is new must be *learnt* first: what lies below at its place, the version that users changed. Only that version is
 *   ever replaced or deleted on the remote.
 * - Moves come first, then folders, then contents; deletions last. What is in the way of something else goes before it.
 */
import type { LeavingEntry, UpperEntry } from 'mountkeeper';
import { ancestors, isAtOrInside, isInside, parentOf } from './paths.ts';
import { findPlaces } from './places.ts';
import type { PendingMove, Places } from './places.ts';
import { DETOUR_PREFIX } from './plan-types.ts';
import type { Conditions, Item, Known, Lesson, Plan } from './plan-types.ts';
import { identityOf, isSameFile, mayBeThere } from './records.ts';
import type { Scan } from './scan.ts';

export function planUpper(scan: Scan, known: Known, conditions: Conditions): Plan {
  const draft = new Draft(scan, known, conditions);
  for (const entry of scan.entries.values()) draft.addEntry(entry);
  draft.addMoves();
  draft.addDeletions();
  draft.order();
  draft.addSpentFolders();
  return draft.plan();
}

export function idOf(action: Item['action'], place: string): string {
  return `${action} ${place}`;
}

class Draft {
  readonly #known: Known;
  readonly #scan: Scan;
  readonly #conditions: Conditions;
  readonly #places: Places;
  readonly #items = new Map<string, Item>();
  readonly #lessons: Lesson[] = [];
  readonly #spent: string[] = [];
  readonly #done: LeavingEntry[] = [];
  /** What users want at places: files and folders, no whiteouts. */
  readonly #wanted = new Map<string, UpperEntry>();
  readonly #whiteouts = new Set<string>();
  /** Folders of which is not known yet what they hide below. */
  readonly #unlearnt = new Set<string>();

  constructor(scan: Scan, known: Known, conditions: Conditions) {
    this.#known = known;
    this.#scan = scan;
    this.#conditions = conditions;
    this.#places = findPlaces(scan, known.moves);
    this.#done.push(...this.#places.moved);
  }

  plan(): Plan {
    const sources = [...this.#places.moves.values()].map(({ source }) => source);
    return { items: this.#items, lessons: this.#lessons, sources, spent: this.#spent, done: this.#done };
  }

  addEntry(entry: UpperEntry): void {
    const place = this.#places.of.get(entry.path);
    if (this.#unlearnt.has(parentOf(entry.path)) && entry.kind === 'folder') this.#unlearnt.add(entry.path);
    if (place === undefined) return this.#add(entry, entry.path, { hold: 'A folder that was here has to be moved on the remote first.' });
    if (entry.kind === 'whiteout') return this.#addWhiteout(entry, place);
    this.#wanted.set(place, entry);
    if (entry.kind === 'file') this.#addFile(entry, place);
    else if (entry.kind === 'folder') this.#addFolder(entry, place);
    else this.#add(entry, place, { isRefused: true, hold: 'The remote takes files and folders only, or cannot keep this name.' });
  }

  #addWhiteout(entry: UpperEntry, place: string): void {
    this.#whiteouts.add(place);
    const record = this.#known.places.get(place);
    if (this.#isTreeKnown(place) ? false : this.#isHidden(entry)) this.#learn(entry, place, true);
    else if (record === undefined || !mayBeThere(record)) this.#markDone(record?.isKept === true ? { ...entry, copy: place } : entry, place);
  }

  #addFile(entry: UpperEntry, place: string): void {
    const record = this.#known.places.get(place);
    if (record !== undefined && isSameFile(record.proved, identityOf(entry))) {
      if (record.copy !== undefined) this.#markDone({ ...entry, copy: record.copy.path }, place);
      return;
    }
    const isUnlearnt = record === undefined ? this.#isHidden(entry) : !this.#isTreeKnown(place);
    if (isUnlearnt) return this.#learn(entry, place, record !== undefined);
    this.#add(entry, place, { hold: this.#holdOf(entry) });
    if (record?.remote.kind === 'folder') this.#addDeletion(place, entry.path);
  }

  #addFolder(entry: UpperEntry, place: string): void {
    if (!this.#places.pure.has(entry.path)) return;
    const record = this.#known.places.get(place);
    const kind = record?.remote.kind;
    if (kind === 'folder' && record?.inode === String(entry.inode)) return;
    if (kind === 'folder' || (kind === undefined && this.#isHidden(entry))) {
      this.#unlearnt.add(entry.path);
      return this.#learn(entry, place, true);
    }
    this.#add(entry, place, { hold: this.#holdOf(entry) });
    if (kind === 'file') this.#addDeletion(place, entry.path);
  }

  /** In a folder that is yet to be moved nothing is taken out: what shows there then is not of this place. */
  #markDone(entry: LeavingEntry, place: string): void {
    if (entry.path === place) this.#done.push(entry);
  }

  /** Whether something may lie below: not in a folder that users made, once it is known what that one hides. */
  #isHidden({ path }: UpperEntry): boolean {
    const parent = parentOf(path);
    return !this.#places.pure.has(parent) || this.#unlearnt.has(parent);
  }

  #learn(entry: UpperEntry, place: string, isTree: boolean): void {
    this.#add(entry, place, { hold: 'What users changed here has not been found out yet.' });
    if (this.#unlearnt.has(parentOf(entry.path))) return;
    this.#lessons.push({ place, isTree, ...(entry.kind === 'folder' && { inode: String(entry.inode) }) });
  }

  /** Whether all that users removed with what was at a place is on record. */
  #isTreeKnown(place: string): boolean {
    const record = this.#known.places.get(place);
    return record !== undefined && (record.remote.kind !== 'folder' || record.isTree === true);
  }

  #holdOf({ path, kind, changedNs }: UpperEntry): string | undefined {
    if (this.#carrier(path) !== undefined) return 'The folder that it is in has to be moved on the remote first.';
    if (kind !== 'file') return undefined;
    if (this.#conditions.isOpen(path)) return 'It is open for writing; it goes up once it is closed.';
    return this.#conditions.isQuiet(changedNs) ? undefined : 'It was changed just now; it goes up when it has been quiet.';
  }

  #carrier(path: string): PendingMove | undefined {
    return [path, ...ancestors(path)].map((one) => this.#places.moves.get(one)).find((move) => move !== undefined);
  }

  #add(entry: UpperEntry, place: string, more: { readonly hold?: string | undefined; readonly isRefused?: boolean }): void {
    const action = ({ file: 'upload', other: 'upload', folder: 'make folder', whiteout: 'delete' } as const)[entry.kind];
    this.#put({ action, path: entry.path, place, entry, bytes: entry.kind === 'file' ? entry.bytes : 0 }, more);
  }

  #put(
    item: Pick<Item, 'action' | 'path' | 'place' | 'bytes' | 'entry' | 'move' | 'isInTheWay'>,
    { hold, isRefused = false }: { readonly hold?: string | undefined; readonly isRefused?: boolean },
  ): void {
    const id = idOf(item.action, item.place);
    this.#items.set(id, { ...item, id, needs: new Set(), isRefused, ...(hold !== undefined && { hold }) });
  }

  /** Folders that users renamed. What cannot go straight, since two are in each other's way, goes over a detour. */
  addMoves(): void {
    const moves = [...this.#places.moves.values()].sort((a, b) => depth(b.source) - depth(a.source));
    const free = moves.filter((move) => this.#isFree(move));
    for (const move of free) this.#addMove(move);
    const blocked = moves.filter((move) => !free.includes(move));
    const detour = free.length > 0 ? undefined : blocked.find(({ source }) => !source.startsWith(DETOUR_PREFIX));
    for (const move of blocked) {
      if (move === detour) this.#putMove(move, true, undefined);
      else this.#putMove(move, false, 'Another folder has to be moved on the remote first.');
    }
  }

  #isFree({ entry: { path }, source }: PendingMove): boolean {
    const parent = parentOf(path);
    if (parent !== '' && (this.#places.of.has(parent) ? this.#places.of.get(parent) !== parent : false)) return false;
    return !isInside(path, source) && ![...this.#places.moves.values()].some((other) => isAtOrInside(other.source, path) && !(other.source === path && other.entry.path === path));
  }

  #addMove(move: PendingMove): void {
    const { path } = move.entry;
    const hold = this.#conditions.inUse.has(path) ? 'Somebody has the folder open; it is moved on the remote once that is closed.' : undefined;
    const record = this.#known.places.get(path);
    const isLearnt = record === undefined ? !this.#isHidden(move.entry) : this.#isTreeKnown(path);
    if (!isLearnt && !this.#unlearnt.has(parentOf(path))) this.#lessons.push({ place: path, isTree: true });
    this.#putMove(move, false, isLearnt ? hold : 'What users changed here has not been found out yet.');
    if (isLearnt && record !== undefined && record.remote.kind !== 'nothing') this.#addDeletion(path, path);
  }

  #putMove(move: PendingMove, isDetour: boolean, hold: string | undefined): void {
    const { entry } = move;
    this.#put({ action: 'move', path: entry.path, place: entry.path, bytes: 0, entry, move: { ...move, isDetour } }, { hold });
  }

  /** Recorded places that users want no more. */
  addDeletions(): void {
    for (const [place, record] of this.#known.places) {
      const isTarget = this.#places.moves.has(place);
      if (this.#wanted.has(place) || isTarget) continue;
      const isEmpty = !mayBeThere(record);
      if (this.#whiteouts.has(place) ? false : isEmpty || record.isLeaving === true) this.#spent.push(place);
      else if (!isEmpty) this.#addDeletion(place, place);
    }
  }

  #addDeletion(place: string, path: string): void {
    const isMoving = [...this.#places.moves.values()].some(({ source }) => isAtOrInside(place, source) || isInside(source, place));
    const isInTheWay = [place, ...ancestors(place)].some((one) => this.#needsRoom(one));
    const entry = this.#scan.entries.get(path);
    const whiteout = entry?.kind === 'whiteout' ? { entry } : {};
    const isUnlearnt = this.#isGoneUnlearnt(place);
    if (isUnlearnt) this.#lessons.push({ place, isTree: true, isGone: true });
    const hold = isUnlearnt ? 'What users changed here has not been found out yet.' : isMoving ? 'A folder in it has to be moved on the remote first.' : undefined;
    this.#put({ action: 'delete', path, place, bytes: 0, isInTheWay, ...whiteout }, { hold });
  }

  /** A folder that is gone from the upper folder without a whiteout, and others had put things into it that showed. */
  #isGoneUnlearnt(place: string): boolean {
    const record = this.#known.places.get(place);
    return record?.remote.kind === 'folder' && record.isShown === true && record.isTree !== true && !this.#whiteouts.has(place);
  }

  #needsRoom(place: string): boolean {
    if (this.#places.moves.has(place)) return true;
    const record = this.#known.places.get(place);
    const kind = this.#wanted.get(place)?.kind;
    if (record === undefined || kind === undefined) return false;
    return (kind === 'file' && record.remote.kind === 'folder') || (kind === 'folder' && record.remote.kind === 'file');
  }

  /** Folders that hide what others put into them, or hold nothing that is ours. */
  addSpentFolders(): void {
    const busy = new Set([...this.#items.values()].flatMap(({ path, place, move }) => {
      const spots = [path, place, move?.source ?? place];
      return [...spots, ...spots.flatMap(ancestors)];
    }));
    const filled = new Set([...this.#scan.entries.keys()].map(parentOf));
    for (const entry of this.#scan.entries.values()) {
      const { path, kind, isOpaque, movedFrom } = entry;
      if (kind !== 'folder' || movedFrom !== undefined || busy.has(path) || !this.#conditions.isRested(entry.changedNs)) continue;
      if (this.#places.of.get(path) === path && (isOpaque || (!filled.has(path) && !this.#places.pure.has(path)))) this.#done.push(entry);
    }
  }

  /** What needs what. */
  order(): void {
    const sent = new Map<string, string[]>();
    for (const item of this.#items.values()) if (item.action === 'upload' && item.entry !== undefined) addTo(sent, likeness(item.bytes, item.entry.modifiedNs), item.id);
    for (const item of this.#items.values()) {
      if (item.action === 'delete') this.#orderDeletion(item, sent);
      else if (item.move?.isDetour !== true) this.#need(item, 'make folder', parentOf(item.place));
    }
  }

  #orderDeletion(item: Item, sent: ReadonlyMap<string, string[]>): void {
    for (const above of [item.place, ...ancestors(item.place)]) this.#makeWait(item, above);
    const remote = this.#known.places.get(item.place)?.remote;
    if (item.isInTheWay === true || remote?.kind !== 'file') return;
    // A file that was renamed here: its content must be on the remote under the new name before the old one goes.
    const { bytes, modifiedMs } = remote.version;
    const second = Math.floor(modifiedMs / 1_000);
    for (const one of [second - 1, second, second + 1]) for (const id of sent.get(`${bytes} ${one}`) ?? []) item.needs.add(id);
  }

  /** Whatever is at or above it: a folder's deletion, or what is to stand there. */
  #makeWait(deletion: Item, above: string): void {
    for (const action of ['delete', 'upload', 'move', 'make folder'] as const) {
      if (action === 'make folder' && above !== deletion.place) continue;
      const other = this.#items.get(idOf(action, above));
      if (other !== deletion) other?.needs.add(deletion.id);
    }
  }

  #need(item: Item, action: Item['action'], place: string): void {
    const other = this.#items.get(idOf(action, place));
    if (other !== undefined && other !== item) item.needs.add(other.id);
  }
}

function likeness(bytes: number, modifiedNs: bigint): string {
  return `${bytes} ${modifiedNs / 1_000_000_000n}`;
}

function addTo(map: Map<string, string[]>, key: string, value: string): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

function depth(path: string): number {
  return path.split('/').length;
}
