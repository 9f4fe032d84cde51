/** Finds the known word that a mistyped one most likely means. */

/** The nearest candidate, if it is near enough to be worth suggesting. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const lower = word.toLowerCase().slice(0, 64);
  let best: string | undefined;
  let bestDistance = Math.min(4, Math.floor(lower.length / 3) + 1) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(lower, candidate.toLowerCase().slice(0, 64));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `"; did you mean "x"?"`, or nothing. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const found = nearest(word, candidates);
  return found === undefined ? '' : `; did you mean "${found}"?`;
}

/** Letters to insert, delete or replace to get from one word to the other (Levenshtein distance). */
function editDistance(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = at(last, column) + (letter === other ? 0 : 1);
      current.push(Math.min(replaced, at(last, column + 1) + 1, at(current, column) + 1));
    }
    last = current;
  }
  return last.at(-1) ?? 0;
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
