import { readFileSync } from 'node:fs';

/** A process by its number and start: the number alone comes again. */
export function instanceOf(pid: number): string {
  const stat = statOf(pid);
  return stat === undefined ? `gone ${pid}` : `${bootId()} ${pid} ${stat[START_FIELD]}`;
}

/** Whether that very process lives. */
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

/** The fields behind the name, which may hold anything. */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function bootId(): string {
  known ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return known;
}

let known: string | undefined;
