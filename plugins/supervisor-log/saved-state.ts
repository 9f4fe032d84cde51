import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import type { Passed } from './fill-levels.ts';

/** What the former daemon has reported; empty when the file is missing or damaged. */
export async function readPassed(file: string): Promise<Passed> {
  try {
    const read = JSON.parse(await readFile(file, 'utf8')) as { passed?: unknown };
    if (typeof read.passed !== 'object' || read.passed === null) return {};
    return Object.fromEntries(
      Object.entries(read.passed).filter((entry): entry is [string, number[]] => Array.isArray(entry[1])),
    );
  } catch {
    // None yet, or none any more: a full cache is told once more.
    return {};
  }
}

export function writePassed(file: string, passed: Passed): Promise<void> {
  return writeWhole(file, `${JSON.stringify({ passed })}\n`);
}
