/** In which shares nothing waited when all caches were last looked through, as at the end of a stop. */
export class CleanCaches {
  /** Mounts that have begun and not come up, or failed, yet. */
  #underWay = 0;
  /** Another set with each look: one that ends late says nothing of this one. */
  #shares = new Set<string>();

  /** Call it before a mount begins; the returned function when it has come up or failed. */
  mounting(): () => void {
    this.#underWay += 1;
    return () => {
      this.#underWay -= 1;
      this.begin();
    };
  }

  /** A look begins: what was seen before counts no more. */
  begin(): void {
    this.#shares = new Set();
  }

  /** Call it when the look at a share's caches begins; the returned function when nothing was found to wait. */
  look(share: string): () => void {
    const shares = this.#shares;
    return () => void shares.add(share);
  }

  /** Whether nothing waits in any of these, and nobody is about to use one. */
  are(shares: readonly string[]): boolean {
    return this.#underWay === 0 && shares.every((share) => this.#shares.has(share));
  }
}
