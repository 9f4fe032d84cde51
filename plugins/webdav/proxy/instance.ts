import { readFileSync } from 'node:fs';

/** Identifies a process by its id and start time, because ids are reused. */
export function instanceOf(pid: number): string {
  const stat = statOf(pid);
  return stat === undefined ? `gone ${pid}` : `${bootId()} ${pid} ${stat[START_FIELD]}`;
}

/** Whether exactly that process is alive. */
export function isLiving(instance: string): boolean {
  const [boot, pid, start] = instance.split(' ');
  const stat = statOf(Number(pid));
  return (
    stat !== undefined &&
    stat[START_FIELD] === start &&
    boot === bootId() &&
    stat[0] !== 'Z' &&
    stat[0] !== 'X'
  );
}

const START_FIELD = 19;

/** The fields after the name, which may contain anything. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    // The process is gone.
    return undefined;
  }
}

function bootId(): string {
  known ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return known;
}

let known: string | undefined;
