/**
 * Stands for a daemon that is to be killed: starts the given processes, prints their process ids and waits
 * for its end.
 */
import { pino } from 'pino';
import { createClock } from '../../../core/platform/clock.ts';
import { createProcesses } from '../../../core/platform/processes/processes.ts';
import type { ProcessSpec } from '../../../core/contract/platform.ts';

const [, , stateDir = '', specs = '[]'] = process.argv;
const processes = createProcesses({ stateDir, clock: createClock(), log: pino({ level: 'silent' }) });
const pids: number[] = [];
process.stdout.write('begin\n');
for (const spec of JSON.parse(specs) as ProcessSpec[]) pids.push((await processes.start(spec)).pid);
process.stdout.write(`${JSON.stringify(pids)}\n`);
process.stdin.resume();
