/**
 * Before users see another lower layer below the overlay that stays: moves whose answer was lost with the
 * former one are found out, and marks are written as the remote has folders now. Marks stay, for overlayfs
 * remembers them.
 */
import { findPlaces } from '../compare/places.ts';
import type { Scan } from '../compare/scan.ts';
import { findOut } from './moves.ts';
import { adoptMoves } from './planner.ts';
import type { StepTools } from './step-tools.ts';

export async function settleLive(scan: Scan, tools: StepTools): Promise<void> {
  const { layer, records } = tools;
  adoptMoves(scan, records);
  for (const [key, { going }] of records.moves) if (going !== undefined) await findOut(key, tools);
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
