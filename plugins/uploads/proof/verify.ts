/** Compares files of the upper folder that were uploaded with what the remote has now. */
import { join } from 'node:path';
import { isAtOrInside } from '../compare/paths.ts';
import { isSameFile, identityOf } from '../compare/records.ts';
import { ask, localStats } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';
import { withLocalFile } from './local-file.ts';
import type { ProofOptions } from './proof-jobs.ts';
import { couldBe, hasSameContent, lookOf } from './versions.ts';

export interface Verified {
  readonly path: string;
  /**
   * `hash`: the content is equal. `size`: the size is equal, and the time where the remote stores it.
   * `differs`: the remote has another version, or none.
   */
  readonly result: 'hash' | 'size' | 'differs';
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly hash?: { readonly kind: string; readonly value: string };
}

export interface Verification {
  readonly files: readonly Verified[];
  /** How many entries at and below the path are not on the remote yet. */
  readonly waiting: number;
}

/** Skips files that wait: those are in the queue. A path of `''` means the whole share. */
export async function verify(path: string, tools: StepTools & ProofOptions): Promise<readonly Verified[]> {
  const found: Verified[] = [];
  const uploaded = [...tools.records.places].filter(
    ([place, { proved }]) => proved !== undefined && (path === '' || isAtOrInside(place, path)),
  );
  for (const [index, [place, record]] of uploaded.entries()) {
    tools.signal.throwIfAborted();
    tools.onProgress(index, uploaded.length);
    const one = await verifyOne(place, record.copy?.path ?? place, tools);
    // What was changed or taken out meanwhile was compared with nothing that still counts.
    const stats = await localStats(tools.layer, place);
    if (one !== undefined && stats !== undefined && isSameFile(record.proved, identityOf(stats)))
      found.push(one);
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Undefined where there is no such file here any more. */
async function verifyOne(place: string, target: string, tools: StepTools): Promise<Verified | undefined> {
  const stats = await localStats(tools.layer, place);
  if (stats === undefined) return undefined;
  const identity = identityOf(stats);
  const look = lookOf(identity);
  const now = await ask(tools, target, true);
  if (now.kind !== 'file') return { path: target, result: 'differs', ...look };
  const compared = await withLocalFile(join(tools.layer.upper, place), identity, async (handle) => ({
    isSame: await hasSameContent(handle, now.version, tools.signal),
  }));
  if (compared === undefined) return undefined;
  const { isSame } = compared;
  if (isSame === undefined)
    return {
      path: target,
      result: couldBe(now.version, look, tools.remote.precisionMs) ? 'size' : 'differs',
      ...look,
    };
  return {
    path: target,
    result: isSame ? 'hash' : 'differs',
    ...look,
    ...(now.version.hash !== undefined && { hash: now.version.hash }),
  };
}
