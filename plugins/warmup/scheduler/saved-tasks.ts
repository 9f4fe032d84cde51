import { readFile } from 'node:fs/promises';
import { Joi, writeWhole } from 'mountkeeper';
import { TARGET_KEYS } from '../checked-target.ts';
import { folderOf } from '../config.ts';
import { NO_COUNTS } from '../job-description.ts';
import { STATES, Task } from './task.ts';
import type { Former, Target } from './task.ts';

type SavedTask = Target & Former;

const COUNTS = Object.keys(NO_COUNTS).map((key) => [key, Joi.number().min(0).required()] as const);

/** A version that saves more is understood, too. */
const SAVED = Joi.object<SavedTask>({
  ...TARGET_KEYS,
  state: Joi.valid(...STATES).required(),
  counts: Joi.object(Object.fromEntries(COUNTS)).unknown().required(),
  isWanted: Joi.boolean().required(),
  isFull: Joi.boolean().required(),
  isRule: Joi.boolean(),
})
  .unknown()
  .required();

function tasksOf(saved: unknown): readonly Task[] {
  const { value, error } = SAVED.validate(saved, { convert: false });
  if (error !== undefined) return [];
  const { share, path, newerThan, isDryRun } = value;
  return [new Task({ share, path: folderOf(path) ?? '', newerThan, isDryRun }, value)];
}

/**
 * Saved tasks of former daemons, by key, without those that make no sense. Empty when the file is missing or cannot
 * be read.
 */
export async function readTasks(file: string): Promise<ReadonlyMap<string, Task>> {
  // As said above.
  const text = await readFile(file, 'utf8').catch(() => '');
  try {
    const { tasks } = JSON.parse(text) as { tasks: unknown[] };
    return new Map(tasks.flatMap(tasksOf).map((task) => [task.key, task] as const));
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
