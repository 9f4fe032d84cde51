/** Runs one step on the remote, by its kind. */
import type { Item } from '../compare/plan-types.ts';
import { deletePlace, makeFolder } from './folders.ts';
import { moveEntry } from './moves.ts';
import type { StepTools } from './step-tools.ts';
import { uploadFile } from './upload.ts';

/** Rejects with `Changed`, or with the remote's reason. `onProgress` gets the bytes sent so far. */
export function perform(item: Item, tools: StepTools, onProgress: (bytes: number) => void): Promise<void> {
  if (item.action === 'make folder') return makeFolder(item, tools);
  if (item.action === 'move') return moveEntry(item, tools);
  if (item.action === 'delete') return deletePlace(item, tools);
  return uploadFile(item, { ...tools, onProgress });
}
