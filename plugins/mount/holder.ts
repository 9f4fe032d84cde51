import type { MountEntry, MountTable } from 'mountkeeper';

/** The file system that a path lies on. */
export async function holderOf(path: string, mountTable: MountTable): Promise<MountEntry | undefined> {
  const above = (await mountTable.list()).filter((entry) => entry.mountPoint === '/' || path === entry.mountPoint || path.startsWith(`${entry.mountPoint}/`));
  return above.sort((a, b) => a.mountPoint.length - b.mountPoint.length).at(-1);
}

/** Whether what lies there can be read only. */
export async function isReadOnly(path: string, mountTable: MountTable): Promise<boolean> {
  return (await holderOf(path, mountTable))?.readOnly === true;
}
