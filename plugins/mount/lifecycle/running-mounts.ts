/** The mounts that are up, and which of them run another rclone than the next mount would have. */
import type { Mount } from 'mountkeeper';
import type { Notice } from '../recovery/recovery-report.ts';
import { rcloneToRun } from '../releases/chosen.ts';
import { ActiveMount } from './active-mount.ts';
import type { MountTools } from './tools.ts';

export class RunningMounts {
  readonly #mounts = new Map<string, ActiveMount>();

  /** Until it ends, or another one of the same share comes. */
  add(mount: Mount): void {
    if (!(mount instanceof ActiveMount)) return;
    const { shareName } = mount;
    this.#mounts.set(shareName, mount);
    void mount.exited.then(() => {
      if (this.#mounts.get(shareName) === mount) this.#mounts.delete(shareName);
    });
  }

  /** Those whose rclone is known, and is not `version`. */
  notOn(version: string): readonly { readonly share: string; readonly rclone: string }[] {
    return [...this.#mounts].flatMap(([share, { rclone }]) =>
      rclone === undefined || rclone === version ? [] : [{ share, rclone }],
    );
  }
}

/** One sentence for each rclone that is still running; none where the next one is not known. */
export async function outdatedNotices(mounts: RunningMounts, tools: MountTools): Promise<readonly Notice[]> {
  // The next mount says what is wrong with it, and so does `doctor`.
  const next = await Promise.resolve()
    .then(() => tools.finder.find(rcloneToRun(tools.config().mount, tools.paths.stateDir)))
    .catch(() => undefined);
  if (next === undefined) return [];
  const shares = byRclone(mounts.notOn(next.version));
  return [...shares].map(([rclone, some]) => ({
    level: 'warning' as const,
    message:
      `${some.map(({ share }) => share).join(', ')}: mounted by ${rclone}, and ${next.version} is in use now; ` +
      'the next mount takes it, `mountkeeper reconnect SHARE` mounts one anew',
  }));
}

function byRclone(
  mounts: ReturnType<RunningMounts['notOn']>,
): ReadonlyMap<string, readonly { readonly share: string }[]> {
  const groups = new Map<string, { readonly share: string }[]>();
  for (const mount of mounts) groups.set(mount.rclone, [...(groups.get(mount.rclone) ?? []), mount]);
  return groups;
}
