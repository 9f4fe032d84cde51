/**
 * Uploads that were proved, and deletions of what was not there, since the remote's folder was last found, and for a
 * while. If the folder turns out to be lost, they may lie on another disk. If the remote ceases to answer, it may have
 * lost power, and what it had not written to its disks yet: it has the former version then, an empty file or none. Each
 * counts again as an upload whose answer was lost, or as one that is still to come, and is compared and done once the
 * remote is back.
 */
import type { RemoteFiles } from 'mountkeeper';
import { isSameWriting } from '../compare/records.ts';
import type { PlaceRecord, Records } from '../compare/records.ts';

/** Where nobody can tell whether the folder is there, older ones are believed. */
const MOST = 10_000;
/** A NAS writes what it was given to its disks within half a minute; it takes a while to be missed. */
const UNWRITTEN_MS = 120_000;

const NEVER = { fromMs: Infinity, toMs: -Infinity };

interface RecentProof {
  readonly place: string;
  /** While the upload was under way. */
  readonly before: PlaceRecord;
  readonly after: PlaceRecord | undefined;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

export class RecentProofs {
  #proofs: RecentProof[] = [];

  /** Call it when the record of an upload's end has taken the place of `before`. */
  add(place: string, before: PlaceRecord, { places }: Records, atMs: number): void {
    this.#proofs.push({ place, before, after: places.get(place), atMs });
    if (this.#proofs.length > MOST) this.#proofs.shift();
  }

  /**
   * Call it before each plan, with the monotonic time in milliseconds. Resolves when what has to be sent again is on
   * record.
   */
  async review({ root }: Pick<RemoteFiles, 'root'>, records: Records, nowMs: number): Promise<void> {
    if (root === undefined) return;
    const { foundAtMs, isLost, silentSinceMs = nowMs, lastSilence = NEVER } = root;
    const isLostWith = ({ atMs }: RecentProof): boolean => isLost && atMs >= foundAtMs;
    // Also during the silence: the NAS may have been slow before it lost power.
    const isUnwritten = ({ atMs }: RecentProof): boolean =>
      atMs >= lastSilence.fromMs - UNWRITTEN_MS && atMs <= lastSilence.toMs;
    const doubted = new Set(this.#proofs.filter((one) => isLostWith(one) || isUnwritten(one)));
    this.#proofs = this.#proofs.filter(
      (one) => !doubted.has(one) && (one.atMs >= foundAtMs || silentSinceMs - one.atMs <= UNWRITTEN_MS),
    );
    if (doubted.size === 0) return;
    // The newest first: what was there before the oldest is what the right folder has.
    for (const { place, before, after } of [...doubted].reverse()) {
      const now = records.places.get(place);
      // What has become of it since is known better, but where it was proved anew, could not leave, or may come back.
      if (isStill(now, after)) records.set(place, { ...before, ...departureOf(now) });
    }
    await records.saved();
  }
}

/** What is missing since it leaves, or has left, is no deletion. */
function departureOf(now: PlaceRecord | undefined): Pick<PlaceRecord, 'isLeaving' | 'away'> {
  if (now?.isLeaving !== true) return {};
  return { isLeaving: true, ...(now.away !== undefined && { away: now.away }) };
}

function isStill(now: PlaceRecord | undefined, after: PlaceRecord | undefined): boolean {
  if (now === after || now === undefined || after === undefined) return now === after;
  if (after.proved !== undefined) return isSameWriting(now.proved, after.proved);
  const isDeleted = ({ remote, sending, isKept }: PlaceRecord): boolean =>
    remote.kind === 'nothing' && sending === undefined && isKept !== true;
  return isDeleted(after) && isDeleted(now);
}
