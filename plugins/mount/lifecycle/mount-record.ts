import type { ManagedProcess, MountPlan } from 'mountkeeper';
import type { NasAddress } from '../outage/nas-address.ts';
import type { RcAddress } from '../rclone/remote-control.ts';

/** What the record of a mount's process keeps for the daemon that adopts it. */
export interface MountNotes {
  readonly share: string;
  readonly plan: MountPlan;
  readonly rc: RcAddress;
  readonly cacheDir: string;
  /** The remote as rclone names it, with the path. */
  readonly fs: string;
  /** Where to look for the NAS, if that is known. */
  readonly nas?: NasAddress | undefined;
  /**
   * Of a share with a write layer: its plan's mount point is where rclone is mounted for the overlay alone.
   */
  readonly overlay?: OverlayNotes | undefined;
}

export interface OverlayNotes {
  /** Where users see the share. */
  readonly mountPoint: string;
  /** The backend, as rclone calls it. */
  readonly type: string;
  readonly exec: boolean;
  readonly readOnly: boolean;
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
    ...(notes.nas && { nasHost: notes.nas.host, nasPort: notes.nas.port, nasManner: notes.nas.manner }),
    ...(notes.overlay && {
      overlayMountPoint: notes.overlay.mountPoint,
      backendType: notes.overlay.type,
      overlayExec: Number(notes.overlay.exec),
      overlayReadOnly: Number(notes.overlay.readOnly),
    }),
  };
}

/** Undefined when the record is not one of ours, or of a version that wrote something else. */
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
