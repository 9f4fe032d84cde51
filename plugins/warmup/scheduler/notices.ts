import type { Notice } from 'mountkeeper';
import type { Task } from './task.ts';

/** A cache that is too small for a rule needs a person. */
export function noticesOf(tasks: readonly Task[]): readonly Notice[] {
  return tasks
    .filter((task) => task.isFull)
    .map(({ target, counts }) => ({
      level: 'warning',
      message:
        `The warmup of ${target.path === '' ? 'all' : `"${target.path}"`} on the share ${target.share} ` +
        `stopped: ${counts.total - counts.skipped - counts.cached - counts.errors} of ${counts.total} ` +
        'files do not fit into its cache. Raise cache.max_size, make room on its disk, or ' +
        'narrow the rule.',
    }));
}
