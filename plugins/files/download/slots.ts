/** How many downloads may run: each is a process, and may hold a thread of the NAS. */

const MOST_AT_ONCE = 12;
/** A share that hangs keeps its own for as long as the kernel keeps their processes, and none of the others'. */
const MOST_OF_SHARE = 4;

export class Slots {
  readonly #taken = new Map<string, number>();

  /** Gives the slot back by the function, which may be called again; a sentence when there is none. */
  take(share: string): (() => void) | string {
    const ofShare = this.#taken.get(share) ?? 0;
    if (ofShare >= MOST_OF_SHARE)
      return `${MOST_OF_SHARE} downloads from this share are running; try again later`;
    const all = [...this.#taken.values()].reduce((sum, one) => sum + one, 0);
    if (all >= MOST_AT_ONCE) return `${MOST_AT_ONCE} downloads are running; try again later`;
    this.#taken.set(share, ofShare + 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#giveBack(share);
      isTaken = false;
    };
  }

  #giveBack(share: string): void {
    const left = (this.#taken.get(share) ?? 1) - 1;
    if (left > 0) this.#taken.set(share, left);
    else this.#taken.delete(share);
  }
}
