/**
 * Holds what lies here against what the remote has now: files of the upper folder that were brought there.
 */
import { join } from 'node:path';
import { isAtOrInside } from '../compare/paths.ts';
import { isSameFile, identityOf } from '../compare/records.ts';
import { ask, localStats } from '../transfer/step-tools.ts';
import type { StepTools } from '../transfer/step-tools.ts';
import { couldBe, hasSameContent, lookOf } from './versions.ts';

export interface Verified {
  readonly path: string;
  /**
   * `hash`: the content is the same. `size`: size, and time where the remote keeps it. `differs`: the remote
   * has another one, or none.
   */
  readonly result: 'hash' | 'size' | 'differs';
  readonly bytes: number;
  readonly modifiedMs: number;
  readonly hash?: { readonly kind: string; readonly value: string };
}

/** What waits is not looked at: it is in the queue. A path of `''` means the whole share. */
export async function verify(path: string, tools: StepTools): Promise<readonly Verified[]> {
  const found: Verified[] = [];
  for (const [place, record] of tools.records.places) {
    if (record.proved === undefined || !(path === '' || isAtOrInside(place, path))) continue;
    tools.signal.throwIfAborted();
    const stats = await localStats(tools.layer, place);
    if (stats === undefined || !isSameFile(record.proved, identityOf(stats))) continue;
    found.push(await verifyOne(place, record.copy?.path ?? place, tools));
  }
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function verifyOne(place: string, target: string, tools: StepTools): Promise<Verified> {
  const stats = await localStats(tools.layer, place);
  if (stats === undefined) throw new Error(`${place} changed while it was looked at.`);
  const look = lookOf(identityOf(stats));
  const now = await ask(tools, target, true);
  if (now.kind !== 'file') return { path: target, result: 'differs', ...look };
  const isSame = await hasSameContent(join(tools.layer.upper, place), now.version, tools.signal);
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
