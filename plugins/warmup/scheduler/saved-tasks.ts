import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import { Task } from './task.ts';
import type { Former, Target } from './task.ts';

type SavedTask = Target & Former;

/** Saved tasks of former daemons, by key. Empty when the file is missing or cannot be read. */
export async function readTasks(file: string): Promise<ReadonlyMap<string, Task>> {
  // As said above.
  const text = await readFile(file, 'utf8').catch(() => '');
  try {
    const { tasks } = JSON.parse(text) as { tasks: SavedTask[] };
    return new Map(
      tasks.map((saved) => {
        const { share, path, newerThan, isDryRun } = saved;
        const task = new Task({ share, path, newerThan, isDryRun }, saved);
        return [task.key, task] as const;
      }),
    );
  } catch {
    // As said above.
    return new Map();
  }
}

export async function writeTasks(file: string, tasks: readonly Task[]): Promise<void> {
  const saved = tasks.map(
    ({ target, state, counts, isWanted, isFull, isRule }) =>
      ({ ...target, state, counts, isWanted, isFull, isRule }) satisfies SavedTask,
  );
  await writeWhole(file, `${JSON.stringify({ tasks: saved }, undefined, 1)}\n`);
}
