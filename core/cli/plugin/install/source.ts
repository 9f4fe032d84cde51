/** What `plugin install` is told to install: a package of the registry, a folder, or a tarball. */
import { stat } from 'node:fs/promises';
import path from 'node:path';

export interface Source {
  readonly kind: 'registry' | 'folder' | 'tarball';
  /** `garden@^1`, or the absolute path. */
  readonly spec: string;
}

/** Name and perhaps version, range or tag; neither an address nor an alias, and never an option. */
const PACKAGE = /^(?:@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*(?:@[\w.+^~*<>=| -]+)?$/i;
const TARBALL = /\.(?:tgz|tar\.gz)$/;

/** As npm does: a word is a package, what has a slash or ends as a tarball is a path. Rejects with a sentence. */
export async function sourceOf(text: string): Promise<Source> {
  if (!isPath(text)) {
    if (!PACKAGE.test(text)) throw new Error(`'${text}' is neither a package nor a path`);
    return { kind: 'registry', spec: text };
  }
  const spec = path.resolve(text);
  // Whatever the system says of it, there is nothing to install.
  const stats = await stat(spec).catch(() => undefined);
  if (stats?.isDirectory() === true) return { kind: 'folder', spec };
  if (stats?.isFile() === true && TARBALL.test(spec)) return { kind: 'tarball', spec };
  throw new Error(
    stats === undefined
      ? `there is no folder or tarball ${text}; packages are taken from the registry, a folder or a .tgz file`
      : `${text} is neither a folder nor a .tgz file`,
  );
}

function isPath(text: string): boolean {
  return /^[./]/.test(text) || TARBALL.test(text) || (text.includes('/') && !text.startsWith('@'));
}

/** Whether the spec names one version, from which no update leads away. */
export function isPinned(spec: string): boolean {
  return /.@=?\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$/.test(spec);
}

const VERSION = /^(\d+)\.(\d+)\.(\d+)(?:-([\w.-]+))?/;

/** Whether one version of a package came before another, by its numbers. False for what is no version. */
export function isOlder(one: string, other: string): boolean {
  const [a, b] = [VERSION.exec(one), VERSION.exec(other)];
  if (!a || !b) return false;
  const differing = [1, 2, 3].find((part) => a[part] !== b[part]);
  if (differing !== undefined) return Number(a[differing]) < Number(b[differing]);
  const [mine, theirs] = [a[4], b[4]];
  // A preview comes before what it is a preview of.
  if (mine === undefined || theirs === undefined) return mine !== undefined && theirs === undefined;
  return mine.localeCompare(theirs, 'en', { numeric: true }) < 0;
}
