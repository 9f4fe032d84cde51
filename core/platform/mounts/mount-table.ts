/** What is mounted, read from the kernel's `/proc/self/mountinfo`. Never touches a mounted path. */
import { readFileSync } from 'node:fs';
import type { MountEntry, MountTable } from '../../contract/platform.ts';

export interface MountLine extends MountEntry {
  readonly id: number;
  readonly parentId: number;
}

interface Table {
  readonly content: Buffer;
  readonly lines: readonly MountLine[];
  readonly topmost: ReadonlyMap<string, MountLine>;
}

export function createMountTable(options: { readonly file?: string } = {}): MountTable {
  const file = options.file ?? '/proc/self/mountinfo';
  let next: Promise<Table> | undefined;
  let last: Table | undefined;
  // Callers in one turn of the event loop share one read, which takes the kernel milliseconds when much is
  // mounted. A caller never joins a read that has already begun: it might miss a mount made since.
  const read = (): Promise<Table> => {
    next ??= new Promise<void>((begin) => setImmediate(begin)).then(() => {
      next = undefined;
      last = readTable(file, last);
      return last;
    });
    return next;
  };
  return {
    list: async () => (await read()).lines,
    find: async (mountPoint) => (await read()).topmost.get(mountPoint),
  };
}

/**
 * Read synchronously: the kernel makes this file from memory. Cached, because it is read at every check of
 * a mount and hardly ever changes.
 */
function readTable(file: string, last: Table | undefined): Table {
  const content = readFileSync(file);
  if (last?.content.equals(content) === true) return last;
  const lines = parseMountInfo(content);
  return { content, lines, topmost: topmostByPath(lines) };
}

/** Understands the text of a mountinfo file; lines it cannot read are left out. */
export function parseMountInfo(content: Buffer): MountLine[] {
  // Bytes stay bytes until the escapes are undone: names need not be valid UTF-8 on either side of an escape.
  const lines = content.toString('latin1').split('\n');
  return lines.map(parseLine).filter((line) => line !== undefined);
}

/** `36 35 98:0 /root /mount/point ro,noatime shared:1 - ext3 /dev/root rw,errors=continue` */
function parseLine(line: string): MountLine | undefined {
  const fields = line.split(' ');
  const dash = fields.indexOf('-', 6);
  const [id, parentId, device, , mountPoint, mountOptions] = fields;
  if (dash < 0 || device === undefined || mountPoint === undefined) return undefined;
  const superOptions = fields[dash + 3] ?? '';
  return {
    id: Number(id),
    parentId: Number(parentId),
    mountPoint: unescapeBytes(mountPoint),
    fsType: unescapeBytes(fields[dash + 1] ?? ''),
    source: unescapeBytes(fields[dash + 2] ?? ''),
    deviceMinor: Number(device.split(':')[1]),
    readOnly: hasReadOnly(mountOptions ?? '') || hasReadOnly(superOptions),
  };
}

/** ext4 after an error of its disk: older kernels write `ro`, newer ones (6.15 on) `emergency_ro` beside `rw`. */
const READ_ONLY: ReadonlySet<string> = new Set(['ro', 'emergency_ro']);

function hasReadOnly(options: string): boolean {
  return options.split(',').some((option) => READ_ONLY.has(option));
}

/** The kernel writes blanks, line ends and backslashes as `\040` and the like. */
function unescapeBytes(text: string): string {
  const bytes = text.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(parseInt(octal, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Of several mounts at one path, the topmost is the one that no other mount covers. */
function topmostByPath(lines: readonly MountLine[]): Map<string, MountLine> {
  const topmost = new Map<string, MountLine>();
  const covered = new Set<string>();
  for (const line of lines) covered.add(`${line.parentId} ${line.mountPoint}`);
  for (const line of lines) {
    if (!covered.has(`${line.id} ${line.mountPoint}`)) topmost.set(line.mountPoint, line);
  }
  return topmost;
}
