/** Configuration changes as text, one line each. */
import { isDeepStrictEqual } from 'node:util';
import type { ConfigChange } from '../contract/config.ts';
import { isTable } from '../sdk/toml/document.ts';
import { splitPath } from '../sdk/toml/path.ts';
import { inlineValue } from '../sdk/toml/value.ts';
import { MASK } from '../sdk/config-types.ts';

const LONGEST_VALUE = 80;
const MOST_LINES = 200;

export function summarize(changes: readonly ConfigChange[]): string {
  const renamed = renames(changes);
  const targets = new Set(renamed.values());
  const lines = changes
    .filter((change) => !targets.has(change))
    .map((change) => {
      const target = renamed.get(change);
      return target === undefined
        ? describe(change)
        : `${change.path}: renamed to ${JSON.stringify(String(splitPath(target.path).at(-1)))}`;
    });
  const hidden = lines.length - MOST_LINES;
  return hidden > 0 ? [...lines.slice(0, MOST_LINES), `and ${hidden} more`].join('\n') : lines.join('\n');
}

function describe({ path, tier, before, after }: ConfigChange): string {
  const note = tier === 'restart' ? ' (waits for the restart)' : '';
  if (isReordered(before, after)) return `${path}: order changed`;
  if (before === undefined)
    return `${path}: added${isTable(after) || after === MASK ? '' : ` ${shown(after)}`}${note}`;
  if (after === undefined) return `${path}: removed${note}`;
  if (before === MASK || after === MASK) return `${path}: ${secretChange(before, after)}${note}`;
  return `${path}: ${shown(before)} → ${shown(after)}${note}`;
}

function secretChange(before: unknown, after: unknown): string {
  if (before === '') return 'set';
  return after === '' ? 'cleared' : 'changed';
}

function isReordered(before: unknown, after: unknown): boolean {
  if (!Array.isArray(before) || !Array.isArray(after)) return false;
  return before.length === after.length && isDeepStrictEqual(new Set(before), new Set(after));
}

function shown(value: unknown): string {
  const text = inlineValue(value);
  return text.length <= LONGEST_VALUE ? text : `${[...text].slice(0, LONGEST_VALUE).join('')}…`;
}

/** A table that was removed while an equal one was added has been renamed. */
function renames(changes: readonly ConfigChange[]): Map<ConfigChange, ConfigChange> {
  const added = new Map<string, ConfigChange[]>();
  for (const change of changes.filter(({ before, after }) => before === undefined && isNamedTable(after))) {
    const mark = likeness(change.path, change.after);
    added.set(mark, [...(added.get(mark) ?? []), change]);
  }
  const found = new Map<ConfigChange, ConfigChange>();
  for (const change of changes.filter(({ before, after }) => after === undefined && isNamedTable(before))) {
    const target = added.get(likeness(change.path, change.before))?.shift();
    if (target !== undefined) found.set(change, target);
  }
  return found;
}

function isNamedTable(value: unknown): boolean {
  return isTable(value) && typeof value['name'] === 'string';
}

/** Equal for tables of one array that differ only in their names and in values derived from them. */
function likeness(path: string, table: unknown): string {
  return JSON.stringify([splitPath(path).slice(0, -1), { ...(table as object), name: '', mount_point: '' }]);
}
