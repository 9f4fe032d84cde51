import { realpath } from 'node:fs/promises';
import type { MountEntry, MountTable } from 'mountkeeper';

/** The file system that a path lies on, wherever links lead it. */
export async function holderOf(named: string, mountTable: MountTable): Promise<MountEntry | undefined> {
  const path = await realpath(named).catch(() => named);
  const above = (await mountTable.list()).filter((entry) => entry.mountPoint === '/' || path === entry.mountPoint || path.startsWith(`${entry.mountPoint}/`));
  return above.sort((a, b) => a.mountPoint.length - b.mountPoint.length).at(-1);
}

/** Whether what lies there can be read only. */
export async function isReadOnly(path: string, mountTable: MountTable): Promise<boolean> {
  return (await holderOf(path, mountTable))?.readOnly === true;
}
