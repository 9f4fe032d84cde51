/**
 * Keeps the former configuration file next to the new one when it contained comments by people, which the
 * new one does not.
 */
import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`read ${file}: ${(error as Error).message}`, { cause: error });
  }
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** True when the former text has a line that the daemon itself would not write. */
export function isHandWritten(former: string, rendered: readonly string[]): boolean {
  const known = new Set(rendered.flatMap(linesOf));
  return linesOf(former).some((line) => !known.has(line));
}

/**
 * Keeps the former file as `<file>.bak` if needed; where another copy has that name, as `.bak.1`, `.bak.2` and so
 * on. No copy is ever overwritten: after an upgrade that reworded the comments, a file of the daemon's own looks
 * hand-written, too. `rendered`: the daemon's own renderings of the running and of the next document. True when a
 * copy is there.
 */
export async function keepHandWritten(file: string, rendered: readonly string[]): Promise<boolean> {
  const former = await readIfThere(file);
  if (former === undefined || !isHandWritten(former, rendered)) return false;
  for (let number = 0; ; number += 1) {
    const copy = number === 0 ? `${file}.bak` : `${file}.bak.${number}`;
    const kept = await readIfThere(copy);
    if (kept === former) return true;
    if (kept !== undefined) continue;
    try {
      await writeWhole(copy, former);
      return true;
    } catch (error) {
      throw new Error(`keep a copy of the former file as ${copy}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}
