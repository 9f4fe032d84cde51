/** Processes of runners that have a process namespace of their own, as the machine knows them. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';

/** For the body of a plugin that has `fs`: its own id as it sees it, and its namespace. */
export const SELF = `[process.pid, fs.readlinkSync('/proc/self/ns/pid')]`;

export type InsidePid = readonly [pid: number, namespace: string];

/** The id outside. Throws where there is no such process any more. */
export function outsidePid([pid, namespace]: InsidePid): number {
  const found = readdirSync('/proc').find((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readlinkSync(`/proc/${name}/ns/pid`) === namespace &&
        Number(/^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'latin1'))?.[1]) === pid
      );
    } catch {
      // It has ended meanwhile.
      return false;
    }
  });
  assert.ok(found !== undefined, `nobody is process ${pid} of ${namespace}`);
  return Number(found);
}
