import { readFileSync } from 'node:fs';

/** A process by its number and start: the number alone comes again. */
export function instanceOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return `gone ${pid}`;
  }
}
