/**
 * Shares that smbd must not show for a while: what it cannot read, it shows as an empty folder (Samba 4.17 asks for
 * no error), which clients that compare take for deleted files.
 */
import { existsSync } from 'node:fs';
import type { Config, LiveShare, Mount } from 'mountkeeper';

export const UNREAD =
  'nothing can be read from the remote just now, and SMB clients would see that as an empty share';

/**
 * Nothing reads from the remote, and none is about to: a killed rclone is replaced within seconds where it answers. Or
 * what is read may be the wrong folder, which shows empty.
 */
export function isUnread({ mount, remoteAnswers }: Pick<LiveShare, 'mount' | 'remoteAnswers'>): boolean {
  if (mount === undefined) return false;
  return mount.isRootLost === true || (remoteAnswers === false && !hasReader(mount));
}

function hasReader({ readerPid, rcPort }: Mount): boolean {
  // Without a process, the share may have come up while its remote was away.
  return readerPid === undefined ? rcPort > 0 : existsSync(`/proc/${readerPid}`);
}

/** Returns what shares are described by: the document, or another object each time that other shares are unread. */
export function createBasis(config: () => Config, shares: () => readonly LiveShare[]): () => unknown {
  let former: { readonly document: Config; readonly unread: string } | undefined;
  return () => {
    const document = config();
    const unread = JSON.stringify(
      shares()
        .filter(isUnread)
        .map(({ spec }) => spec.share.name),
    );
    if (former?.document !== document || former.unread !== unread) former = { document, unread };
    return former;
  };
}
