/**
 * The core of the uploader: plans the steps after which the remote is what users see. A pure function of a
 * scan of the upper folder and of the records; it asks nobody and changes nothing, and its steps can be
 * repeated any number of times.
 * - A file without a record of its upload is uploaded. For a whiteout, and for a recorded place that no
 * entry of the upper folder stands for any more, the place is deleted. A folder with the mark of a rename
 * is moved. A folder that users created is created.
 * - A new change must be *learnt* first: what the lower layer has at its place is the version that users
 * changed. Only that version is ever replaced or deleted on the remote.
 * - Moves come first, then folders, then contents; deletions last. Whatever blocks another step comes
 * before it.
 */
import type { LeavingEntry } from 'mountkeeper';
import { ancestors, depth, folded, isAtOrInside, isInside, parentOf, PathIndex } from './paths.ts';
import { isText, shownPath } from './names.ts';
import { idOf, orderItems } from './order.ts';
import { findPlaces, isFree, isInCircle, isTargetHere } from './places.ts';
import type { PendingMove, Places } from './places.ts';
import { DETOUR_PREFIX } from './plan-types.ts';
import type { CleanFile, Conditions, Item, Known, Lesson, Plan } from './plan-types.ts';
import { identityOf, isSameFile, isSameWriting, mayBeFile, mayBeThere } from './records.ts';
import type { PlaceRecord } from './records.ts';
import { bornMsOf } from './scan.ts';
import type { Scan, ScanEntry } from './scan.ts';
import { linkSimilarNames } from './similar-names.ts';
import { spentFolders } from './spent-folders.ts';
import { lostMoves, unseenFolders } from './unseen-folders.ts';

export function planUpper(scan: Scan, known: Known, conditions: Conditions): Plan {
  const draft = new Draft(scan, known, conditions);
  for (const entry of scan.entries.values()) draft.addEntry(entry);
  draft.addMoves();
  draft.addDeletions();
  draft.addLostMoves();
  const plan = draft.plan();
  linkSimilarNames(draft.items, draft.wanted.keys());
  orderItems(plan.items, known);
  return plan;
}

interface Why {
  readonly hold?: string | undefined;
  readonly quietAt?: number | undefined;
  readonly isRefused?: boolean;
  readonly isDisplaced?: boolean;
  readonly isUnlearnt?: boolean;
}

const UNLEARNT = 'What users changed here has not been found out yet.';
const MAY_BE_CUT =
  'The disk was full when it was written, so its end may be missing; ' +
  'it goes up when it is written again, or at once with `queue --send`.';
const MAY_BE_TORN =
  'The power went while this was being written, so content may be missing: look at it; then send it with ' +
  '`queue --send`, write it again, or discard it to have back what the NAS has.';
const REMOVED_LATE =
  'It may be what was renamed right before the power went, to a file whose content may be missing; it goes once ' +
  'that one has been seen to.';
const REMOVED_WITH_CUT =
  'It may be what was renamed to a file whose end is missing, since the disk was full; it goes once that one has ' +
  'been seen to, or at once with `queue --send`.';
const SECOND_NAME =
  'It is a second name (a hard link) of a file that only the NAS has; no NAS keeps that. Copy the file instead.';
const LEFT_BY_NO_TEXT =
  'What was in it has a name now that is not valid UTF-8; it goes once that is renamed.';
const CHANGING = 'It was changed while it was looked at; it is looked at again in a moment.';
/** `mount.write_back` may be hours: the queue says when that is. */
const NOT_QUIET = 'It goes up once nobody has changed it for a while.';

class Draft {
  readonly #known: Known;
  readonly #scan: Scan;
  readonly #conditions: Conditions;
  readonly #places: Places;
  readonly items = new Map<string, Item>();
  readonly #lessons: Lesson[] = [];
  readonly #spent: string[] = [];
  readonly #done: LeavingEntry[] = [];
  readonly #stale: LeavingEntry[] = [];
  readonly #clean: CleanFile[] = [];
  readonly #cut: { readonly place: string; readonly entry: ScanEntry }[] = [];
  /** Files and folders that users want, by place; no whiteouts. */
  readonly wanted = new Map<string, ScanEntry>();
  readonly #whiteouts = new Set<string>();
  #hasTorn = false;
  /** There is a file that may be cut off: its former name on the remote may be all that is left of it. */
  #hasCut = false;
  /** Folders for which it is not known yet what they hide in the lower layer. */
  readonly #unlearnt = new Set<string>();
  /**
   * Places between which the remote may have moved something, or not; includes entries that users deleted
   * since.
   */
  readonly #unsure: PathIndex<string>;
  /** Folders that may have shown empty when they were removed. */
  readonly #unseen: PathIndex<string>;

  constructor(scan: Scan, known: Known, conditions: Conditions) {
    this.#known = known;
    this.#scan = scan;
    this.#conditions = conditions;
    this.#places = findPlaces(scan, known.moves);
    this.#unseen = unseenFolders(scan, known);
    this.#unsure = new PathIndex(
      [...known.moves.values()].flatMap(({ at, going }) =>
        going === undefined ? [] : [at, going].map((place): [string, string] => [place, place]),
      ),
    );
  }

  plan(): Plan {
    const sources = [...this.#places.moves.values()].map(({ source }) => source);
    const marked = [...this.#places.stale].map(([path, nowAt]) => ({
      ...this.#scan.entries.get(path)!,
      nowAt,
    }));
    return {
      items: this.items,
      lessons: this.#lessons,
      sources,
      spent: this.#spent,
      done: [
        ...this.#done,
        ...spentFolders(this.#scan, {
          items: this.items,
          moves: this.#known.moves,
          places: this.#places,
          isRested: this.#conditions.isRested,
        }),
      ],
      stale: [...marked, ...this.#stale],
      clean: this.#clean,
      cut: this.#cut,
    };
  }

  addEntry(entry: ScanEntry): void {
    const place = this.#places.of.get(entry.path);
    if (this.#unlearnt.has(parentOf(entry.path)) && entry.kind === 'folder') this.#unlearnt.add(entry.path);
    if (this.#places.shared.get(entry.path) === false) return this.#addSecondName(entry);
    if (place === undefined) return this.#addDisplaced(entry);
    if (!isText(place)) this.#addNoText(entry, place);
    else if (entry.kind === 'whiteout') this.#addWhiteout(entry, place);
    else this.#addWanted(entry, place);
  }

  #addWanted(entry: ScanEntry, place: string): void {
    this.wanted.set(place, entry);
    if (entry.kind === 'file' && this.#places.moves.has(entry.path)) return;
    if (entry.hasNoData === true) this.#addDataless(entry, place);
    else if (entry.kind === 'file') this.#addFile(entry, place);
    else if (entry.kind === 'folder') this.#addFolder(entry, place);
    else
      this.#add(entry, place, {
        isRefused: true,
        hold: 'The remote takes files and folders only, with names that are valid UTF-8.',
      });
  }

  /** The remote is not asked for it, nor told to delete it: that would be about another name. */
  #addNoText(entry: ScanEntry, place: string): void {
    if (entry.kind === 'file') this.#noteCut(entry, place, this.#known.places.get(place));
    if (entry.kind === 'whiteout') return this.#add({ ...entry, kind: 'other' }, place, {});
    this.wanted.set(place, entry);
    this.#add(entry, place, {});
  }

  #addSecondName(entry: ScanEntry): void {
    // What the remote has by that name stays as it is.
    this.wanted.set(entry.path, entry);
    this.#add({ ...entry, kind: 'other' }, entry.path, { hold: SECOND_NAME, isRefused: true });
  }

  /** Its place belongs to another entry until that one has been moved and users see it at its new place. */
  #addDisplaced(entry: ScanEntry): void {
    // Its move is done.
    if (entry.hasNoData === true) return;
    const isPending = this.#places.bySource.atOrAbove(entry.path).length > 0;
    // It only hides a place where users no longer look for anything.
    if (entry.kind === 'whiteout' && !isPending && this.#isFormer(entry.path)) return;
    this.#add(entry, entry.path, {
      hold: 'What was here has to be moved on the remote first.',
      isDisplaced: true,
    });
  }

  #isFormer(path: string): boolean {
    return this.#places.byFormer.atOrAbove(path).length > 0;
  }

  /**
   * There is nothing to upload. A move is done with the others; a changed mode, which no remote stores, is
   * dropped after a while.
   */
  #addDataless(entry: ScanEntry, place: string): void {
    // The other names lead to what this one stands for.
    if (this.#places.pure.has(parentOf(entry.path)) || this.#places.shared.has(entry.path)) return;
    if (this.#known.moves.has(entry.key ?? '')) this.#stale.push(entry);
    else if (this.#conditions.isRested(entry.changedNs)) this.#markDone(entry, place);
  }

  #addWhiteout(entry: ScanEntry, place: string): void {
    this.#whiteouts.add(place);
    const record = this.#known.places.get(place);
    if (this.#isTreeKnown(place) ? false : this.#isHidden(entry)) this.#learn(entry, place, true);
    else if (record === undefined || !mayBeThere(record))
      this.#markDone(record?.isKept === true ? { ...entry, copy: place } : entry, place);
  }

  #addFile(entry: ScanEntry, place: string): void {
    const record = this.#known.places.get(place);
    if (record !== undefined && isSameFile(record.proved, identityOf(entry))) {
      if (record.copy !== undefined) this.#markDone({ ...entry, copy: record.copy.path }, place);
      else this.#addClean(entry, place, record);
      return;
    }
    this.#noteCut(entry, place, record);
    if (entry.isUnread === true) return this.#add(entry, place, { hold: CHANGING });
    const isUnlearnt = record === undefined ? this.#isHidden(entry) : !this.#isTreeKnown(place);
    if (isUnlearnt) return this.#learn(entry, place, record !== undefined);
    this.#add(entry, place, this.#whyNot(entry, place, record));
    if (record?.remote.kind === 'folder') this.#addDeletion(place, entry.path);
  }

  /** Also of one that cannot be planned yet: its time may be another by then, as where its mode is changed. */
  #noteCut(entry: ScanEntry, place: string, record: PlaceRecord | undefined): void {
    if (!this.#conditions.isCut(entry.changedNs) || this.#conditions.isUrgent(entry.path)) return;
    this.#hasCut = true;
    if (record !== undefined && !isSameWriting(record.cut, identityOf(entry)))
      this.#cut.push({ place, entry });
  }

  #whyNot(entry: ScanEntry, place: string, record: PlaceRecord | undefined): Why {
    const damage = this.#damageOf(entry, place, record);
    this.#hasTorn ||= damage === MAY_BE_TORN;
    this.#hasCut ||= damage === MAY_BE_CUT;
    return damage === undefined ? this.#holdOf(entry) : { hold: damage, isRefused: true };
  }

  /**
   * A file that a full disk truncated, or a power cut emptied, must not replace the remote's version until somebody
   * writes it again or confirms it.
   */
  #damageOf(entry: ScanEntry, place: string, record: PlaceRecord | undefined): string | undefined {
    if (this.#conditions.isUrgent(entry.path)) return undefined;
    if (this.#conditions.late.isTorn(entry)) return MAY_BE_TORN;
    if (isSameWriting(record?.cut, identityOf(entry))) return MAY_BE_CUT;
    if (!this.#conditions.isCut(entry.changedNs)) return undefined;
    if (record === undefined) this.#cut.push({ place, entry });
    return MAY_BE_CUT;
  }

  /** Not in an opaque folder or one from another place: there it is all that users see. */
  #addClean(entry: ScanEntry, place: string, { remote, hasFormerLook = false }: PlaceRecord): void {
    const isHome = entry.path === place && !this.#places.pure.has(parentOf(place));
    if (!isHome || remote.kind !== 'file') return;
    const mayMakeRoom = !hasFormerLook && this.#conditions.isRested(entry.changedNs);
    this.#clean.push({ entry, version: remote.version, mayMakeRoom });
  }

  #isUnlearntFolder(entry: ScanEntry, record: PlaceRecord | undefined): boolean {
    return record === undefined && this.#isHidden(entry);
  }

  #addFolder(entry: ScanEntry, place: string): void {
    if (!this.#places.pure.has(entry.path)) return;
    const record = this.#known.places.get(place);
    const kind = record?.remote.kind;
    if (kind === 'folder' && record?.folder === entry.key) return;
    if (this.#isUnseenAt(place)) {
      this.#unlearnt.add(entry.path);
      return this.#add(entry, place, this.#holdOf(entry));
    }
    if (kind === 'folder' || this.#isUnlearntFolder(entry, record)) {
      this.#unlearnt.add(entry.path);
      return this.#learn(entry, place, true);
    }
    this.#add(entry, place, this.#holdOf(entry));
    if (mayBeFile(record)) this.#addDeletion(place, entry.path);
  }

  /**
   * Nothing is removed from a folder that waits for its move: what would become visible does not belong to
   * this place.
   */
  #markDone(entry: LeavingEntry, place: string): void {
    if (entry.path === place) this.#done.push(entry);
  }

  /**
   * Whether there may be a lower entry: not in a folder that users created, once it is known what that
   * folder hides.
   */
  #isHidden({ path }: ScanEntry): boolean {
    const parent = parentOf(path);
    return !this.#places.pure.has(parent) || this.#unlearnt.has(parent);
  }

  #learn(entry: ScanEntry, place: string, isTree: boolean): void {
    this.#add(entry, place, { hold: UNLEARNT, isUnlearnt: true });
    if (this.#unlearnt.has(parentOf(entry.path))) return;
    const isGone = isGoneFolder(this.#known.places.get(place));
    const folder = entry.kind === 'folder' ? entry.key : undefined;
    const made = { ...bornOf(entry), ...changedOf(entry, this.#scan) };
    const wasThere = isGone || entry.kind === 'whiteout';
    this.#lessons.push({ place, isTree, isGone, wasThere, ...made, ...(folder !== undefined && { folder }) });
  }

  /** Whether everything that users deleted together with the place is recorded. */
  #isTreeKnown(place: string): boolean {
    const record = this.#known.places.get(place);
    return record !== undefined && (record.remote.kind !== 'folder' || record.isTree === true);
  }

  #holdOf({ path, kind, changedNs }: ScanEntry): Why {
    if (this.#carrier(path) !== undefined)
      return { hold: 'The folder that it is in has to be moved on the remote first.' };
    if (kind !== 'file') return {};
    if (this.#conditions.isOpen(path))
      return { hold: 'It is open for writing; it goes up once it is closed.' };
    const quietAt = this.#conditions.quietAt(changedNs, path);
    return quietAt === undefined ? {} : { hold: NOT_QUIET, quietAt };
  }

  #carrier(path: string): PendingMove | undefined {
    return [path, ...ancestors(path)]
      .map((one) => this.#places.moves.get(one))
      .find((move) => move !== undefined);
  }

  #add(entry: ScanEntry, place: string, more: Why): void {
    const action = ({ file: 'upload', other: 'upload', folder: 'make folder', whiteout: 'delete' } as const)[
      entry.kind
    ];
    const isOverUnseen = action === 'make folder' && this.#isUnseenAt(place);
    const bytes = entry.kind === 'file' ? entry.bytes : 0;
    this.#put({ action, path: entry.path, place, entry, bytes, ...(isOverUnseen && { isOverUnseen }) }, more);
  }

  #isUnseenAt(place: string): boolean {
    return this.#unseen.atOrAbove(place).includes(place);
  }

  #put(
    item: Omit<Item, 'id' | 'needs' | 'hold' | 'quietAt'>,
    { hold, quietAt, isRefused = false, isDisplaced = false, isUnlearnt = false }: Why,
  ): void {
    const id = idOf(item.action, item.place);
    const unkept = item.action === 'delete' ? undefined : this.#unkept(item.place);
    const why = unkept ?? hold ?? this.#waitsFor(item);
    this.items.set(id, {
      ...item,
      id,
      needs: new Set(),
      isRefused: isRefused || unkept !== undefined,
      isDisplaced,
      isUnlearnt,
      ...heldBy(why, { hold, quietAt }),
    });
  }

  #waitsFor(item: Pick<Item, 'action' | 'place' | 'move' | 'isOverUnseen'>): string | undefined {
    return item.move?.going === undefined ? (this.#awaited(item) ?? this.#tornBy(item)) : undefined;
  }

  /** The sentence about a name that the remote would give back as another one; of a folder, for all in it. */
  #unkept(place: string): string | undefined {
    for (const name of place.split('/')) {
      const problem = isText(name) ? this.#conditions.nameProblem(name) : 'it is not valid UTF-8';
      const quoted = isText(name) ? JSON.stringify(name) : `"${shownPath(name)}"`;
      if (problem !== undefined) return `The remote cannot keep the name ${quoted}: ${problem}. Rename it.`;
    }
    return undefined;
  }

  /**
   * Nothing is done at a place where an earlier attempt, whose answer was lost, may have moved something,
   * until that is known.
   */
  #awaited({ place, move }: Pick<Item, 'place' | 'move'>): string | undefined {
    const spots = [place, ...(move === undefined ? [] : [move.source])];
    const isUnsure = spots.some((spot) => this.#unsure.near(spot).length > 0);
    return isUnsure ? 'It has to be found out first whether the remote has moved something here.' : undefined;
  }

  #tornBy({
    action,
    place,
    isOverUnseen,
  }: Pick<Item, 'action' | 'place' | 'isOverUnseen'>): string | undefined {
    if (this.#conditions.isWhole || this.#conditions.often?.has(place) === true) return undefined;
    const record = this.#known.places.get(place);
    const isReplacing =
      action === 'delete' || (action === 'upload' && record?.remote.kind === 'file') || isOverUnseen === true;
    return isReplacing
      ? 'Files are being renamed just now; it goes when that has been seen whole.'
      : undefined;
  }

  /** Plans the renames of users. Two that block each other go through a temporary name. */
  addMoves(): void {
    const all = [...this.#places.moves.values()].sort((a, b) => depth(b.source) - depth(a.source));
    // First finds out whether it has already arrived.
    for (const move of all) if (move.going !== undefined) this.#putMove(move, false, undefined);
    const moves = all.filter(({ going }) => going === undefined);
    const free = moves.filter((move) => isFree(move, this.#places));
    for (const move of free) this.#addMove(move);
    const blocked = moves.filter((move) => !isFree(move, this.#places));
    const isOneGoing = free.some(({ entry }) => this.items.get(idOf('move', entry.path))?.hold === undefined);
    const isDetourDue = !isOneGoing && moves.length === all.length && this.#places.former.length === 0;
    const mayDetour = (move: PendingMove): boolean =>
      !move.source.startsWith(DETOUR_PREFIX) && (free.length === 0 || isInCircle(move, this.#places));
    const detour = isDetourDue ? blocked.find(mayDetour) : undefined;
    for (const move of blocked) this.#addBlockedMove(move, move === detour);
  }

  #addBlockedMove(move: PendingMove, isDetour: boolean): void {
    // Now, though it is replaced later: what others save there meanwhile is not what users saw.
    if (isTargetHere(move, this.#places)) this.#isTargetLearnt(move);
    if (isDetour) this.#putMove(move, true, this.#isSourceLearnt(move) ? undefined : UNLEARNT);
    else this.#putMove(move, false, 'Something else has to be moved on the remote first.');
  }

  #addMove(move: PendingMove): void {
    const { path } = move.entry;
    const record = this.#known.places.get(path);
    const isTargetLearnt = this.#isTargetLearnt(move);
    const isLearnt = this.#isSourceLearnt(move) && isTargetLearnt;
    // A remote that tells no case apart would find the target taken, by the file itself.
    const isDetour = folded(move.source) === folded(path);
    const use = this.#useOf(move);
    this.#putMove(move, isDetour, isLearnt ? use : UNLEARNT);
    // What it replaces goes right before it, not hours earlier.
    if (isLearnt && record !== undefined && mayBeThere(record)) this.#addDeletion(path, path, use);
  }

  /** For what it replaces it must be known what users saw of it. */
  #isTargetLearnt({ entry }: PendingMove): boolean {
    const { path } = entry;
    // It cannot go there.
    if (!isText(path)) return true;
    const record = this.#known.places.get(path);
    const isLearnt = record === undefined ? !this.#isHidden(entry) : this.#isTreeKnown(path);
    if (!isLearnt && !this.#unlearnt.has(parentOf(path))) {
      const isGone = isGoneFolder(record);
      this.#lessons.push({
        place: path,
        isTree: true,
        isGone,
        wasThere: isGone,
        ...changedOf(entry, this.#scan),
      });
    }
    return isLearnt;
  }

  #useOf({ entry: { path, kind } }: PendingMove): string | undefined {
    if (kind !== 'folder' || !this.#conditions.inUse.has(path)) return undefined;
    return 'Somebody has the folder open; it is moved on the remote once that is closed.';
  }

  /** For a file it must be known which version users moved. */
  #isSourceLearnt({ entry, source }: PendingMove): boolean {
    const isLearnt = entry.hasNoData !== true || this.#known.places.has(source);
    if (!isLearnt) this.#lessons.push({ place: source, isTree: false, wasThere: true });
    return isLearnt;
  }

  #putMove(move: PendingMove, isDetour: boolean, hold: string | undefined): void {
    const { entry } = move;
    this.#put(
      { action: 'move', path: entry.path, place: entry.path, bytes: 0, entry, move: { ...move, isDetour } },
      { hold: hold ?? this.#leftByNoText(move) },
    );
  }

  /** Its mark is not written anew before it has another name: where the folder went, it could not even be renamed. */
  #leftByNoText({ source, going }: PendingMove): string | undefined {
    const isLeft = this.#places.bySource.inside(source).some(({ entry }) => !isText(entry.path));
    return isLeft && going === undefined ? LEFT_BY_NO_TEXT : undefined;
  }

  /** Plans deletions of recorded places that users no longer want. */
  addDeletions(): void {
    for (const [place, record] of this.#known.places) {
      const isTarget = this.#places.moves.has(place);
      if (this.wanted.has(place) || isTarget) continue;
      const isEmpty = !mayBeThere(record);
      // What lies here at a moved entry's former place is compared with the remote later.
      const isHere = this.#whiteouts.has(place) || (isEmpty && this.#scan.entries.has(place));
      if (!isHere && (isEmpty || this.#isNoDeletion(place, record))) this.#spent.push(place);
      else if (!isEmpty) this.#addDeletion(place, place);
    }
  }

  /** Plans to find out where the remote has what users removed before that was known. */
  addLostMoves(): void {
    for (const { key, at, going } of lostMoves(this.#scan, this.#known)) {
      // Nothing of it is here, and something else may have its name: so it has a place of its own, and no entry.
      const about = { inode: 0n, bytes: 0, modifiedNs: 0n, changedNs: 0n, isOpaque: false };
      const entry: ScanEntry = { ...about, path: going, kind: 'folder', key };
      const move = { entry, source: at, going, isDetour: false };
      const place = `${DETOUR_PREFIX}${key}`;
      this.#put({ action: 'move', path: going, place, bytes: 0, move }, this.#holdOfLost(at));
    }
  }

  /** What users saw where it was comes first: that alone tells what they deleted from what did not show. */
  #holdOfLost(at: string): Why {
    const isLearnt = !this.#lessons.some(({ place }) => isAtOrInside(at, place));
    // Where something else may have gone, that waits for an answer itself.
    const isIn = [...this.#known.moves.values()].some(
      ({ going }) => going !== undefined && isInside(at, going),
    );
    return isLearnt || isIn ? {} : { hold: UNLEARNT };
  }

  /** It has left, or lies in a folder that may have shown empty. */
  #isNoDeletion(place: string, { isLeaving }: PlaceRecord): boolean {
    return isLeaving === true || this.#unseen.atOrAbove(parentOf(place)).length > 0;
  }

  #addDeletion(place: string, path: string, heldAnyway?: string): void {
    const isMoving = this.#places.bySource.near(place).length > 0;
    const around = [place, ...ancestors(place)];
    const isInTheWay = around.some((one) => this.#needsRoom(one));
    const makesWayFor = around
      .map((one) => this.#places.moves.get(one)?.source)
      .find((one) => one !== undefined);
    const entry = this.#scan.entries.get(path);
    const whiteout = entry?.kind === 'whiteout' ? { entry } : {};
    const isUnlearnt = this.#isGoneUnlearnt(place);
    if (isUnlearnt) this.#lessons.push({ place, isTree: true, isGone: true, wasThere: true });
    const hold = isUnlearnt
      ? UNLEARNT
      : isMoving
        ? 'A folder in it has to be moved on the remote first.'
        : (this.#heldWithDamaged(path) ?? heldAnyway);
    const planned = this.#known.places.get(place);
    this.#put(
      {
        action: 'delete',
        path,
        place,
        bytes: 0,
        isInTheWay,
        ...(makesWayFor !== undefined && { makesWayFor }),
        ...whiteout,
        ...(planned && { planned }),
      },
      { hold },
    );
  }

  /** Where a file was renamed, the former name may be all that the remote has of it. */
  #heldWithDamaged(path: string): string | undefined {
    const { isUrgent, late } = this.#conditions;
    if (isUrgent(path)) return undefined;
    if (this.#hasTorn && late.wasRemoved(path)) return REMOVED_LATE;
    return this.#hasCut ? REMOVED_WITH_CUT : undefined;
  }

  /**
   * True for a folder that is missing from the upper folder without a whiteout, although others had put
   * visible entries into it. Not where it may have shown empty: then only an empty one is deleted.
   */
  #isGoneUnlearnt(place: string): boolean {
    const record = this.#known.places.get(place);
    return (
      record?.remote.kind === 'folder' &&
      record.isShown === true &&
      record.isTree !== true &&
      !this.#whiteouts.has(place) &&
      this.#unseen.atOrAbove(place).length === 0
    );
  }

  #needsRoom(place: string): boolean {
    if (this.#places.moves.has(place)) return true;
    const record = this.#known.places.get(place);
    const kind = this.wanted.get(place)?.kind;
    if (record === undefined || kind === undefined) return false;
    return (kind === 'file' && record.remote.kind === 'folder') || (kind === 'folder' && mayBeFile(record));
  }
}

/** `why`: what counts, of several; the moment belongs to `hold` alone. */
function heldBy(
  why: string | undefined,
  { hold, quietAt }: Pick<Why, 'hold' | 'quietAt'>,
): Pick<Item, 'hold' | 'quietAt'> {
  if (why === undefined) return {};
  return quietAt === undefined || why !== hold ? { hold: why } : { hold: why, quietAt };
}

/** A folder that the uploader has put there, and that has been shown: nothing of it is here, so users took it away. */
function isGoneFolder(record: PlaceRecord | undefined): boolean {
  return record?.remote.kind === 'folder' && record.isShown === true;
}

function bornOf({ kind, key }: ScanEntry): Pick<Lesson, 'bornMs'> {
  return kind === 'file' && key !== undefined ? { bornMs: bornMsOf(key) } : {};
}

const NS_PER_MS = 1_000_000n;

/** All whiteouts of a share may be one inode, whose time is that of the last: so the folder's time counts as well. */
function changedOf({ path, kind, key, changedNs }: ScanEntry, { folders }: Scan): Pick<Lesson, 'changedMs'> {
  if (kind === 'folder') return key === undefined ? {} : { changedMs: bornMsOf(key) };
  // Not when it was modified: anybody may set that back, as a copy does that keeps times.
  const [, , around = changedNs] = folders.get(parentOf(path))?.split(' ') ?? [];
  const lastNs = kind === 'whiteout' && BigInt(around) < changedNs ? BigInt(around) : changedNs;
  return { changedMs: Number(lastNs / NS_PER_MS) };
}
