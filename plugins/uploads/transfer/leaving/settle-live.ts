/**
 * Runs before the lower layer is replaced below an overlay that stays mounted: finds out the result of
 * moves whose answer was lost, and rewrites marks to where the remote has the folders now. Marks are never
 * removed, because overlayfs caches them.
 */
import { findPlaces } from '../../compare/places.ts';
import type { Scan } from '../../compare/scan.ts';
import { findOut } from '../moves.ts';
import { adoptMoves } from '../planner.ts';
import type { StepTools } from '../step-tools.ts';

export async function settleLive(scan: Scan, tools: StepTools): Promise<void> {
  const { layer, records } = tools;
  adoptMoves(scan, records);
  const here = new Set([...scan.entries.values()].map(({ key }) => key));
  // Of what users have removed meanwhile, what they saw comes first: that is the uploader's.
  for (const [key, { going }] of records.moves)
    if (going !== undefined && here.has(key)) await findOut(key, tools);
  await records.saved();
  const { stale } = findPlaces(scan, records.moves);
  const entries = [...stale]
    .map(([path, nowAt]) => ({ ...scan.entries.get(path)!, nowAt }))
    .filter(({ redirect, nowAt }) => redirect !== `/${nowAt}`);
  if (entries.length === 0) return;
  const done = new Set(await layer.rewriteMarks(entries));
  const left = entries.find(({ path }) => !done.has(path));
  if (left !== undefined)
    throw new Error(`the mark of ${left.path} could not be written: its user has just changed it`);
}
