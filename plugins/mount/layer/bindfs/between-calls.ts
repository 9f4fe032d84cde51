/**
 * Tells whether a bindfs that is stopped has begun any call. One that has opened a folder and not read it yet would
 * read it when it goes on: where the remote has moved the folder meanwhile, rclone gives it no names, and no error.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** `read` and `splice` by architecture, as Node names it: a thread waits for its next call in one of these. */
const WAITS: Readonly<Partial<Record<NodeJS.Architecture, readonly number[]>>> = {
  x64: [0, 275],
  arm64: [63, 76],
};
const DEVICE = '/dev/fuse';

/** True also where the kernel does not tell, and where the process has ended. */
export function isBetweenCalls(pid: number): boolean {
  const waits = WAITS[process.arch];
  if (waits === undefined) return true;
  try {
    const devices = devicesOf(pid);
    // The first thread only waits for the end of the others.
    const threads = readdirSync(`/proc/${pid}/task`).filter((id) => id !== String(pid));
    return threads.every((id) => {
      const [call, file] = readFileSync(`/proc/${pid}/task/${id}/syscall`, 'latin1').split(' ');
      return waits.includes(Number(call)) && devices.has(Number(file));
    });
  } catch {
    // It has ended, or nothing of it may be seen: nobody can tell.
    return true;
  }
}

/** The descriptors through which the kernel asks it. */
function devicesOf(pid: number): ReadonlySet<number> {
  const folder = `/proc/${pid}/fd`;
  const open = readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`) === DEVICE;
    } catch {
      // Closed since it was listed.
      return false;
    }
  });
  return new Set(open.map(Number));
}
