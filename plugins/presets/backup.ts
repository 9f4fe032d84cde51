/**
 * Keeps the former configuration file beside the new one when it held what the new one will not: notes of a
 * human.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';

const MODE = 0o600;

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

/** True when a line of the former text stands in none of the texts that the daemon itself would write. */
export function isHandWritten(former: string, rendered: readonly string[]): boolean {
  const known = new Set(rendered.flatMap(linesOf));
  return linesOf(former).some((line) => !known.has(line));
}

/** Exclusive creation and rename: never follows a link that someone put there, never leaves half a file. */
async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}`;
  const handle = await open(temporary, 'wx', MODE);
  try {
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Writes `<file>.bak` if needed. `rendered` are the daemon's own renderings of the running and of the next
 * document.
 */
export async function keepHandWritten(file: string, rendered: readonly string[]): Promise<boolean> {
  const former = await readIfThere(file);
  if (former === undefined || !isHandWritten(former, rendered)) return false;
  try {
    await replaceFile(`${file}.bak`, former);
    return true;
  } catch (error) {
    throw new Error(`keep a copy of the former file as ${file}.bak: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
