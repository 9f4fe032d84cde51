/** Finds fewer rounds that still go wrong: halves of what is left are left out in turn (ddmin, Zeller 2002). */

/** `isWrong` is called at most `tries` times. Resolves with the shortest list that was seen to go wrong. */
export async function shrunk(
  rounds: readonly number[],
  isWrong: (rounds: readonly number[]) => Promise<boolean>,
  tries: number,
): Promise<readonly number[]> {
  let left = rounds;
  let pieces = 2;
  let tried = 0;
  while (left.length > 1 && tried < tries) {
    const size = Math.ceil(left.length / pieces);
    const without = Array.from({ length: pieces }, (_, place) =>
      left.filter((_, at) => at < place * size || at >= (place + 1) * size),
    ).filter((one) => one.length > 0 && one.length < left.length);
    let shorter: readonly number[] | undefined;
    for (const candidate of without) {
      if (tried >= tries) break;
      tried += 1;
      if (await isWrong(candidate)) {
        shorter = candidate;
        break;
      }
    }
    if (shorter === undefined && size === 1) return left;
    pieces = shorter === undefined ? Math.min(left.length, pieces * 2) : Math.max(2, pieces - 1);
    left = shorter ?? left;
  }
  return left;
}
