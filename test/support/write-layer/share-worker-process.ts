/** The child that touches the share: carries out steps, reads beginnings of files, looks at trees. */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { carryOut } from './operations.ts';
import type { Step } from './operations.ts';
import { treeOf } from './folder-tree.ts';
import { carryOut as act } from '../torture/deeds.ts';
import type { Action } from '../torture/plan.ts';

export type ShareWorkerRequest =
  | { readonly op: 'steps'; readonly root: string; readonly steps: readonly Step[] }
  | { readonly op: 'read'; readonly root: string; readonly files: readonly string[]; readonly bytes: number }
  | { readonly op: 'act'; readonly root: string; readonly action: Action }
  | { readonly op: 'tree'; readonly root: string };

function read(root: string, files: readonly string[], bytes: number): number {
  const buffer = Buffer.alloc(bytes);
  for (const file of files) {
    const fd = openSync(join(root, file), 'r');
    try {
      while (readSync(fd, buffer) === bytes && bytes > 100_000);
    } finally {
      closeSync(fd);
    }
  }
  return files.length;
}

function answer(request: ShareWorkerRequest): unknown {
  if (request.op === 'steps') return request.steps.map((step) => carryOut(request.root, step) ?? null);
  if (request.op === 'act') return act(request.root, 'local', request.action) ?? null;
  return request.op === 'read' ? read(request.root, request.files, request.bytes) : treeOf(request.root);
}

process.on('message', ({ id, request }: { id: number; request: ShareWorkerRequest }) => {
  try {
    process.send?.({ id, result: answer(request) });
  } catch (error) {
    process.send?.({ id, error: (error as Error).message });
  }
});
process.on('disconnect', () => process.exit(0));
