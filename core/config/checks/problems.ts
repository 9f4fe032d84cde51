/** Problems of a document: turns Joi's errors into plain sentences with line and column. */
import type { ValidationError, ValidationErrorItem } from 'joi';
import type { ConfigProblem } from '../../contract/config.ts';
import { suggestion } from '../schema/did-you-mean.ts';
import type { KeyNode } from '../schema/key-tree.ts';
import { isTable } from '../../sdk/toml/document.ts';
import { joinPath, splitPath } from '../../sdk/toml/path.ts';
import type { Segment } from '../../sdk/toml/path.ts';
import { Positions } from '../../sdk/toml/positions.ts';
import { MASK } from '../../sdk/config-types.ts';

const MOST_SHOWN = 20;
const MOST_KEPT = 200;
/** How Joi's own sentence about an unknown key ends. */
const UNSAID = ' is not allowed';

/** Joi's errors in plain words. Values of secret keys are left out. */
export function schemaProblems(error: ValidationError, root: KeyNode): ConfigProblem[] {
  const found = error.details.slice(0, MOST_KEPT).map((detail) => {
    const path = joinPath(placeOf(detail));
    // A table of names may say itself which ones it takes.
    const isUnsaid = detail.type === 'object.unknown' && detail.message.endsWith(UNSAID);
    const message = isUnsaid ? unknownKey(detail.path, root) : withoutSecret(detail, root);
    return { path, message };
  });
  // Two rules of one key may give the same message.
  return [...new Map(found.map((problem) => [`${problem.path}\0${problem.message}`, problem])).values()];
}

/** Of two tables that must not have the same name, the name of the second one. */
function placeOf({ type, path, context }: ValidationErrorItem): readonly Segment[] {
  const item = context?.['value'] as unknown;
  return type === 'array.unique' && isTable(item) && item['name'] !== undefined ? [...path, 'name'] : path;
}

function unknownKey(path: readonly Segment[], root: KeyNode): string {
  const key = String(path.at(-1));
  const parent = path.slice(0, -1);
  const siblings = nodeAt(root, parent)?.children.keys() ?? [];
  const place = parent.length === 0 ? 'the document' : joinPath(parent);
  return `unknown key "${key}" in ${place}${suggestion(key, siblings)}`;
}

function withoutSecret(detail: ValidationErrorItem, root: KeyNode): string {
  const value = detail.context?.value as unknown;
  const nodes = detail.path.map((_, index) => nodeAt(root, detail.path.slice(0, index + 1)));
  const isSecret = nodes.some((node) => node?.secret === true) || detail.path.includes('options');
  return isSecret && typeof value === 'string' && value !== '' && value !== MASK
    ? detail.message.replaceAll(value, MASK)
    : detail.message;
}

/** The schema node of a path in a document; an array index leads to the node of the array's tables. */
export function nodeAt(root: KeyNode, path: readonly Segment[]): KeyNode | undefined {
  return path.reduce<KeyNode | undefined>(
    (node, segment) => (typeof segment === 'number' ? node : node?.children.get(segment)),
    root,
  );
}

/** Adds the line and column of each path, and sorts by them. Drops problems beyond `MOST_KEPT`. */
export function locate(problems: readonly ConfigProblem[], text: string): ConfigProblem[] {
  if (problems.length === 0) return [];
  const positions = new Positions(text);
  const located = problems.slice(0, MOST_KEPT).map((problem) => {
    if (problem.line !== undefined || problem.path === undefined) return problem;
    return { ...problem, ...positions.find(splitPath(problem.path)) };
  });
  return located.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

/** All problems as one text: what follows "Validation error: ". */
export function describeProblems(problems: readonly ConfigProblem[]): string {
  const shown = problems.slice(0, MOST_SHOWN).map((problem) => {
    const place = problem.line === undefined ? '' : ` (line ${problem.line}, column ${problem.column ?? 1})`;
    return `${problem.message}${place}`;
  });
  const hidden = problems.length - shown.length;
  return [...shown, ...(hidden > 0 ? [`and ${hidden} more`] : [])].join('; ');
}
