/**
 * Errors that are dropped without a word: `catch {` and `.catch(() => …)`. Each needs a comment that says why, on
 * its line, as the first line of its block, or above its statement.
 */
const SWALLOWS = /\bcatch \{|\.catch\(\(\) =>/;
const COMMENT = /^(?:\/\/|\/\*|\*)/;

/** Numbers of the lines, from 1, that swallow an error and do not say why. */
export function unexplainedCatches(text: string): readonly number[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) =>
    SWALLOWS.test(line) && !COMMENT.test(line.trim()) && !isExplained(lines, index) ? [index + 1] : [],
  );
}

function isExplained(lines: readonly string[], index: number): boolean {
  const line = lines[index] ?? '';
  if (/\/\/ |\/\*/.test(line) || (line.endsWith('{') && isComment(lines[index + 1]))) return true;
  return line.includes('.catch(') && isComment(lines[statementAt(lines, index) - 1]);
}

function isComment(line: string | undefined): boolean {
  return COMMENT.test(line?.trim() ?? '');
}

/** Where the statement begins that goes on in this line: its brackets are closed, and it is no link of a chain. */
function statementAt(lines: readonly string[], index: number): number {
  const line = lines[index] ?? '';
  let depth = openings(line.slice(0, line.indexOf('.catch(')));
  let at = index;
  while (at > 0 && (depth < 0 || /^\??\./.test(lines[at]?.trim() ?? ''))) {
    at -= 1;
    depth += openings(lines[at] ?? '');
  }
  return at;
}

/** Brackets opened less those closed. */
function openings(text: string): number {
  return (text.match(/[([{]/g)?.length ?? 0) - (text.match(/[)\]}]/g)?.length ?? 0);
}
