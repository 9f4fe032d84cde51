/** The notes in the process record of a share's bindfs, for the daemon that adopts it. */
import { lstat } from 'node:fs/promises';
import type { ManagedProcess, MountPlan } from 'mountkeeper';
import { remotePath } from '../rclone/arguments.ts';
import type { LayerPlan } from './layer-plan.ts';

export interface StackNotes {
  /** The mount plan as users see it. */
  readonly plan: MountPlan;
  readonly cacheDir: string;
  /** The remote in rclone's notation, with the path. */
  readonly fs: string;
  /** The backend's name in rclone. */
  readonly type: string;
  readonly exec: boolean;
  readonly readOnly: boolean;
  /** Of the layer's folder that is mounted (`folderId`). Absent in records of versions before. */
  readonly layer?: string;
}

/** Tells a folder from every other that is there, or in use, in the same boot. Rejects where there is none. */
export async function folderId(path: string): Promise<string> {
  const { dev, ino } = await lstat(path, { bigint: true });
  return `${dev} ${ino}`;
}

export function toStackNotes({
  shown,
  cacheDir,
  overlay,
  lowerSpec,
}: LayerPlan): Record<string, string | number> {
  return {
    mountPoint: shown.mountPoint,
    identity: shown.identity,
    cacheDir,
    fs: remotePath(lowerSpec),
    type: overlay.type,
    exec: Number(overlay.exec),
    readOnly: Number(overlay.readOnly),
  };
}

/** Undefined when the record was written by a version with another format. */
export function fromStackNotes({
  notes,
  fingerprint,
}: Pick<ManagedProcess, 'notes' | 'fingerprint'>): StackNotes | undefined {
  const [mountPoint, identity, cacheDir, fs, type] = ['mountPoint', 'identity', 'cacheDir', 'fs', 'type'].map(
    (name) => notes[name],
  );
  if (typeof mountPoint !== 'string' || typeof identity !== 'string' || typeof cacheDir !== 'string')
    return undefined;
  if (typeof fs !== 'string' || typeof type !== 'string') return undefined;
  return {
    plan: { mountPoint, identity, fingerprint },
    cacheDir,
    fs,
    type,
    exec: notes['exec'] === 1,
    readOnly: notes['readOnly'] === 1,
    ...(typeof notes['layer'] === 'string' && { layer: notes['layer'] }),
  };
}
