/** `ctx.log` of a plugin in its own process: each line goes to the daemon, which writes it. */
import { pino } from 'pino';
import type { Logger } from '../../../contract/platform.ts';
import type { Said } from '../protocol.ts';

/** Twice what the daemon takes in a second; what is beyond is not even sent. */
const MOST_A_SECOND = 100;

export function runnerLog(level: string, say: (message: Said) => void): Logger {
  let sinceMs = performance.now();
  let lines = 0;
  const write = (text: string): void => {
    const nowMs = performance.now();
    if (nowMs - sinceMs > 1_000) [sinceMs, lines] = [nowMs, 0];
    lines += 1;
    if (lines > MOST_A_SECOND) return;
    const { level: name, msg = '', ...fields } = JSON.parse(text) as { level: string; msg?: unknown };
    say({ is: 'log', level: name, message: typeof msg === 'string' ? msg : JSON.stringify(msg), fields });
  };
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ level, base: null, timestamp: false, formatters }, { write });
}
