/**
 * Rules for what only the configuration file may say. Whoever can write the file has a shell on this
 * machine; a document over HTTP may come from somebody who has none. Such a document is compared with the
 * running configuration, key by key:
 * - a key that the schema marks `fileOnly` stays as it is (`'but-default'`: or is reset to its default);
 * - a reference to a file, a variable or a credential stays unchanged at its key;
 * - a path contains no `..`;
 * - of a plugin that was not found, only `enabled = false` is accepted: its keys cannot be checked, and
 * they would take effect on the day it is installed.
 * Tables with names are matched by name. New tables are compared with the defaults, and whole tables may be
 * removed.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config, ConfigProblem } from '../../contract/config.ts';
import { isTable } from '../../sdk/toml/document.ts';
import type { KeyNode } from '../schema/key-tree.ts';
import { joinPath } from '../../sdk/toml/path.ts';
import type { Segment } from '../../sdk/toml/path.ts';
import { isReference } from '../secrets/secrets.ts';
import { onlyInFile } from '../../sdk/config-types.ts';

export interface Comparison {
  /** As written: paths in it are not resolved. */
  readonly document: unknown;
  readonly config: Config;
  readonly current: Config;
}

/** One place in the documents. */
interface Place {
  readonly written: unknown;
  readonly next: unknown;
  /** The running value; for a new table, the default. */
  readonly now: unknown;
  readonly node: KeyNode | undefined;
  readonly path: readonly Segment[];
}

export function fileOnlyProblems({ document, config, current }: Comparison, root: KeyNode): ConfigProblem[] {
  return judge({ written: document, next: config, now: current, node: root, path: [] });
}

function judge(place: Place): ConfigProblem[] {
  const { written, next, now, node, path } = place;
  if (isDeepStrictEqual(next, now)) return [];
  if (node && node.fileOnly !== false) {
    const isBack = node.fileOnly === 'but-default' && isDeepStrictEqual(next, node.default);
    return isBack ? [] : [refused(path, 'cannot be changed over HTTP')];
  }
  if (isReference(next))
    return [refused(path, 'refers to a secret that the configuration file does not refer to there')];
  if (climbs(written, node)) return [refused(path, 'holds ".."')];
  if (Array.isArray(next)) return items(place).flatMap(judge);
  return isTable(next) ? keys(place, next).flatMap((key) => judgeKey(place, key)) : [];
}

function refused(path: readonly Segment[], why: string): ConfigProblem {
  const label = joinPath(path);
  return { path: label, message: onlyInFile(`${label} ${why}`) };
}

function climbs(written: unknown, node: KeyNode | undefined): boolean {
  return node?.type === 'path' && typeof written === 'string' && written.split('/').includes('..');
}

/** Pairs each table with the running one of the same name; a running table is paired at most once. */
function items({ written, next, now, node, path }: Place): Place[] {
  const before = Array.isArray(now) ? (now as unknown[]) : [];
  const byName = new Map(before.map((one) => [nameOf(one), one]));
  return (next as unknown[]).map((item, index) => {
    const name = nameOf(item);
    const beside = name === undefined ? before[index] : byName.get(name);
    if (name !== undefined) byName.delete(name);
    return {
      written: Array.isArray(written) ? (written[index] as unknown) : undefined,
      next: item,
      now: beside,
      node: itemNode(node),
      path: [...path, index],
    };
  });
}

function itemNode(node: KeyNode | undefined): KeyNode | undefined {
  return node?.kind === 'tables' ? { ...node, kind: 'table' } : undefined;
}

function nameOf(item: unknown): string | undefined {
  const name = isTable(item) ? item['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** Includes keys that were removed: removing a value that the file sets is a change, too. */
function keys({ now, node }: Place, next: Record<string, unknown>): string[] {
  const known = isTable(now) ? Object.keys(now) : [];
  return [...new Set([...(node?.children.keys() ?? []), ...Object.keys(next), ...known])];
}

function judgeKey({ written, next, now, node, path }: Place, key: string): ConfigProblem[] {
  const child = node?.children.get(key);
  const place: Place = {
    written: isTable(written) ? written[key] : undefined,
    next: (next as Record<string, unknown>)[key],
    now: isTable(now) ? now[key] : child?.default,
    node: child,
    path: [...path, key],
  };
  return child === undefined && path.length === 1 && path[0] === 'plugins'
    ? judgeUnknownPlugin(place)
    : judge(place);
}

function judgeUnknownPlugin(place: Place): ConfigProblem[] {
  const { next, now, path } = place;
  if (next === undefined || isDeepStrictEqual(next, now)) return [];
  if (isOnlyOff(next, now)) return [];
  if (!isOn(next)) return [refused(path, 'is of a plugin that is not there and cannot be set over HTTP')];
  const what = `cannot be ${isOn(now) ? 'changed' : 'switched on'} over HTTP`;
  return [refused(path, `is of a plugin that is not there and ${what}`)];
}

/** Unchanged apart from being switched off; keys may be removed. */
function isOnlyOff(next: unknown, now: unknown): boolean {
  if (!isTable(next) || isOn(next)) return false;
  return Object.entries(next).every(
    ([key, value]) => key === 'enabled' || isDeepStrictEqual(value, isTable(now) ? now[key] : undefined),
  );
}

function isOn(table: unknown): boolean {
  return isTable(table) && table['enabled'] !== undefined && table['enabled'] !== false;
}
