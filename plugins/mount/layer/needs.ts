/** What a share needs to be written to, in the words that a share which lacks it and `mountkeeper doctor` say. */
import type { MountTable, ShareSpec } from 'mountkeeper';
import { holderOf } from '../cache/file-system.ts';
import { locate } from '../rclone/installed.ts';

export const NO_UPLOADER =
  'the plugin uploads, which brings to the remote what users write, is not active; see `mountkeeper plugin list`';
const NO_BINDFS = 'bindfs is missing: install the package bindfs';
/** Where overlayfs finds no `trusted.*` attributes, or takes no upper folder. */
const UNFIT = /^(nfs|cifs|smb|fuse|9p|vfat|exfat|msdos|ntfs|overlay)/;

/** Only root may mount an overlay: without it, a share is rclone's own mount, which can only be read. */
export function isLayered(): boolean {
  return process.getuid?.() === 0;
}

/** Undefined where nothing is in the way of mounting the share as it is set. */
export async function layerProblem(
  { share }: ShareSpec,
  { cacheDir, mountTable }: { readonly cacheDir: string; readonly mountTable: MountTable },
): Promise<string | undefined> {
  if (isLayered()) return (await bindfsProblem()) ?? diskProblem(cacheDir, mountTable);
  return share.read_only
    ? undefined
    : 'writing to a share needs a daemon that runs as root: run it as root, or set read_only = true for the share';
}

export async function bindfsProblem(): Promise<string | undefined> {
  return (await locate('bindfs')) === undefined ? NO_BINDFS : undefined;
}

/** `dir`: `cache.dir`, or a folder in it. */
export async function diskProblem(dir: string, mountTable: MountTable): Promise<string | undefined> {
  const { fsType } = (await holderOf(dir, mountTable)) ?? {};
  return fsType !== undefined && UNFIT.test(fsType)
    ? `what users write cannot be kept in ${dir}, which lies on ${fsType}: ` +
        'set cache.dir to a folder on a local disk with ext4, XFS or Btrfs'
    : undefined;
}

/** The module may be loaded by the first mount, so a kernel without it shows only then. */
export const NO_OVERLAYFS = 'the kernel has no overlayfs, which every share needs: load the module overlay';
