import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import { Task } from './task.ts';
import type { Former, Target } from './task.ts';

type SavedTask = Target & Former;

/**
 * What former daemons left, by key. A file that is not there or cannot be read means that nothing is known.
 */
export async function readTasks(file: string): Promise<ReadonlyMap<string, Task>> {
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
