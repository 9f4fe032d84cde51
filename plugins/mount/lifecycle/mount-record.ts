import type { ManagedProcess, MountPlan, NasAddress } from 'mountkeeper';
import type { RcAddress } from '../rclone/control/remote-control.ts';

/** The mount record: notes in the process record of a mount, for the daemon that adopts it. */
export interface MountNotes {
  readonly share: string;
  readonly plan: MountPlan;
  readonly rc: RcAddress;
  readonly cacheDir: string;
  /** The remote in rclone's notation, with the path. */
  readonly fs: string;
  /** Address of the NAS, if it is known. */
  readonly nas?: NasAddress | undefined;
  /**
   * For a share with a write layer; the plan's mount point is then where rclone is mounted below the
   * overlay.
   */
  readonly overlay?: OverlayNotes | undefined;
  /** What its rclone says of its version; undefined for one that an older Mountkeeper has started. */
  readonly rclone?: string | undefined;
}

export interface OverlayNotes {
  /** Where users see the share. */
  readonly mountPoint: string;
  /** The backend's name in rclone. */
  readonly type: string;
  readonly exec: boolean;
  readonly readOnly: boolean;
}

export interface MountPlace {
  readonly share: string;
  readonly mountPoint: string;
}

export function placeOf({ share, plan }: MountNotes): MountPlace {
  return { share, mountPoint: plan.mountPoint };
}

export function toNotes(notes: MountNotes): Record<string, string | number> {
  return {
    share: notes.share,
    mountPoint: notes.plan.mountPoint,
    identity: notes.plan.identity,
    rcPort: notes.rc.port,
    ...(notes.rc.socket !== undefined && { rcSocket: notes.rc.socket }),
    rcUser: notes.rc.user,
    rcPassword: notes.rc.password,
    cacheDir: notes.cacheDir,
    fs: notes.fs,
    ...(notes.rclone !== undefined && { rclone: notes.rclone }),
    ...(notes.nas && { nasHost: notes.nas.host, nasPort: notes.nas.port, nasManner: notes.nas.manner }),
    ...(notes.overlay && {
      overlayMountPoint: notes.overlay.mountPoint,
      backendType: notes.overlay.type,
      overlayExec: Number(notes.overlay.exec),
      overlayReadOnly: Number(notes.overlay.readOnly),
    }),
  };
}

/** Undefined when the record is not one of ours, or was written by a version with another format. */
export function fromNotes({
  notes,
  fingerprint,
}: Pick<ManagedProcess, 'notes' | 'fingerprint'>): MountNotes | undefined {
  const text = (name: string): string | undefined =>
    typeof notes[name] === 'string' ? notes[name] : undefined;
  const [share, mountPoint, identity, user, password, cacheDir, fs] = [
    'share',
    'mountPoint',
    'identity',
    'rcUser',
    'rcPassword',
    'cacheDir',
    'fs',
  ].map(text);
  const port = notes['rcPort'];
  if (
    !share ||
    !mountPoint ||
    !identity ||
    !user ||
    !password ||
    !cacheDir ||
    !fs ||
    typeof port !== 'number'
  )
    return undefined;
  return {
    share,
    plan: { mountPoint, identity, fingerprint },
    rc: { port, socket: text('rcSocket'), user, password },
    cacheDir,
    fs,
    nas: nasIn(notes),
    overlay: overlayIn(notes),
    rclone: text('rclone'),
  };
}

function overlayIn({
  overlayMountPoint: mountPoint,
  backendType: type,
  overlayExec: exec,
  overlayReadOnly: readOnly,
}: ManagedProcess['notes']): OverlayNotes | undefined {
  return typeof mountPoint === 'string' && typeof type === 'string'
    ? { mountPoint, type, exec: exec === 1, readOnly: readOnly === 1 }
    : undefined;
}

function nasIn({
  nasHost: host,
  nasPort: port,
  nasManner: manner,
}: ManagedProcess['notes']): NasAddress | undefined {
  if (typeof host !== 'string' || typeof port !== 'number') return undefined;
  return manner === 'greets' || manner === 'answers' || manner === 'accepts'
    ? { host, port, manner }
    : undefined;
}
