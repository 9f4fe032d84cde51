/**
 * Commented TOML of a document: every comment is the schema's description, set keys are written, unset ones
 * are commented out with their default. The same document always gives the same text, and the text parses
 * back to it.
 */
import { isTable } from '../sdk/toml/document.ts';
import type { Document } from '../sdk/toml/document.ts';
import type { KeyNode } from './schema/key-tree.ts';
import { bareOrQuoted, inlineValue } from '../sdk/toml/value.ts';

const WIDTH = 100;

/** A table to be written: its header, its value, and whether it exists or is shown only as a hint. */
interface Block {
  readonly path: readonly string[];
  readonly node: KeyNode | undefined;
  readonly value: Document;
  readonly isHint: boolean;
  /** Comments and unset keys are shown once per array of tables, at its first table. */
  readonly isBrief: boolean;
}

export function renderDocument(document: Document, root: KeyNode): string {
  const known = [...root.children.keys()];
  const unknown = Object.keys(document).filter((key) => !root.children.has(key));
  // Values must come before the first table's header; at the root only an empty array of tables is a value.
  const values = [...known, ...unknown].filter(
    (key) => key in document && !isSection(document[key], root.children.get(key)),
  );
  const head = values.map((key) => assignment(key, document[key]));
  const sections = [...known, ...unknown]
    .filter((key) => !values.includes(key))
    .flatMap((key) => section([key], document[key], root.children.get(key), false));
  return `${[head.join('\n'), ...sections].filter((block) => block !== '').join('\n\n')}\n`;
}

function isSection(value: unknown, node: KeyNode | undefined): boolean {
  if (node?.kind === 'value') return false;
  if (Array.isArray(value)) return node?.kind === 'tables' && value.length > 0 && value.every(isTable);
  return isTable(value);
}

/** One table or array of tables with everything below it, as blocks of text. */
function section(
  path: readonly string[],
  value: unknown,
  node: KeyNode | undefined,
  isBrief: boolean,
): string[] {
  if (isTable(value)) return table({ path, node, value, isHint: false, isBrief }, `[${header(path)}]`);
  const name = `[[${header(path)}]]`;
  if (Array.isArray(value))
    return value.flatMap((item, index) =>
      table({ path, node, value: item as Document, isHint: false, isBrief: isBrief || index > 0 }, name),
    );
  if (isBrief || node === undefined) return [];
  return table(
    { path, node, value: {}, isHint: true, isBrief },
    node.kind === 'tables' ? name : `[${header(path)}]`,
  );
}

function table(block: Block, title: string): string[] {
  const { path, node, value, isHint, isBrief } = block;
  const children = node?.children ?? new Map<string, KeyNode>();
  const names = [...children.keys(), ...Object.keys(value).filter((key) => !children.has(key))];
  const tables = names.filter((key) => isOwnTable(value[key], children.get(key), path.length));
  const lines = names.filter((key) => !tables.includes(key)).map((key) => keyLines(key, block));
  const heading = [...(isBrief ? [] : comment(node?.description ?? '')), isHint ? `#${title}` : title];
  const own = [...heading, ...lines.filter((text) => text !== ''), ...(isHint ? example(node) : [])].join(
    '\n',
  );
  const below = tables.flatMap((key) => section([...path, key], value[key], children.get(key), isBrief));
  return [own, ...below];
}

/** An example for a table whose keys are free. */
function example(node: KeyNode | undefined): string[] {
  if (node === undefined || node.children.size > 0 || !isTable(node.example)) return [];
  return Object.entries(node.example).map(([key, value]) => `#${assignment(key, value)}`);
}

/** Known tables get their own header; undeclared tables get one only directly in a section. */
function isOwnTable(value: unknown, node: KeyNode | undefined, depth: number): boolean {
  if (node === undefined) return depth === 1 && isTable(value);
  if (value === undefined) return node.kind !== 'value';
  return isSection(value, node);
}

function keyLines(key: string, { node: parent, value, isBrief }: Block): string {
  const node = parent?.children.get(key);
  const isSet = value[key] !== undefined;
  if (isBrief && !isSet) return '';
  const line = isSet ? assignment(key, value[key]) : `#${assignment(key, hint(node))}`;
  return [...(isBrief ? [] : comment(node?.description ?? '')), line].join('\n');
}

/** What an unset key shows: its default, else an example. */
function hint(node: KeyNode | undefined): unknown {
  return node?.default ?? node?.example ?? '';
}

function assignment(key: string, value: unknown): string {
  return `${bareOrQuoted(key)} = ${inlineValue(value)}`;
}

function header(path: readonly string[]): string {
  return path.map(bareOrQuoted).join('.');
}

/** Comment lines no wider than `WIDTH`, broken at spaces, but not inside braces. */
export function comment(text: string): string[] {
  const lines: string[] = [];
  const words = text.replaceAll(/[\s\x00-\x1f\x7f]+/g, ' ').match(/\{[^{}]{1,60}\}\S*|\S+/g) ?? [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < WIDTH) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`# ${word}`);
  }
  return lines;
}
