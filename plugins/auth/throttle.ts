/**
 * Slows down guessing, per client address: after a wrong password the next different one of that address is looked at
 * only after a pause that doubles. Other addresses are not affected, and memory is bounded.
 */
import { isIPv6 } from 'node:net';
import type { Clock } from 'mountkeeper';

export interface Throttle {
  /** Resolves when the address may try; false when it tries too often to be let wait. */
  enter(address: string, signal: AbortSignal): Promise<boolean>;
  /** Returns how many wrong passwords came from there lately. */
  failed(address: string): number;
  readonly size: number;
}

/** What is remembered of one address. */
interface Visits {
  failures: number;
  /** Monotonic time before which nothing of this address is looked at. */
  nextAt: number;
  waiting: number;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
const FORGET_AFTER_MS = 10 * 60_000;
const MAX_ADDRESSES = 2_000;
const MAX_WAITING_PER_ADDRESS = 4;
const MAX_WAITING = 200;

/** One key for all addresses that one IPv6 client has at hand. */
export function clientKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped) return mapped[1] ?? address;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%')[0] ?? '').toLowerCase().split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

export function createThrottle(clock: Clock): Throttle {
  const records = new Map<string, Visits>();
  let waiting = 0;

  function makeRoom(): void {
    const now = clock.monotonic();
    for (const [key, record] of records) {
      const isOld = record.nextAt + FORGET_AFTER_MS < now;
      if (record.waiting > 0 || (!isOld && records.size < MAX_ADDRESSES)) continue;
      records.delete(key);
    }
  }

  /** Moves to the end: the first of the map is then the one not heard of for longest. */
  function recordOf(address: string): Visits {
    const key = clientKey(address);
    const record = records.get(key) ?? { failures: 0, nextAt: 0, waiting: 0 };
    if (!records.has(key) && records.size >= MAX_ADDRESSES) makeRoom();
    records.delete(key);
    records.set(key, record);
    return record;
  }

  async function waitFor(record: Visits, signal: AbortSignal): Promise<boolean> {
    if (record.waiting >= MAX_WAITING_PER_ADDRESS || waiting >= MAX_WAITING) return false;
    record.waiting += 1;
    waiting += 1;
    try {
      // Another of the same address may have failed meanwhile, and moved the end of the pause.
      while (record.nextAt > clock.monotonic()) await clock.sleep(record.nextAt - clock.monotonic(), signal);
      return true;
    } finally {
      record.waiting -= 1;
      waiting -= 1;
    }
  }

  return {
    get size() {
      return records.size;
    },
    async enter(address, signal) {
      const record = records.get(clientKey(address));
      if (!record || record.nextAt <= clock.monotonic()) return true;
      return waitFor(record, signal);
    },
    failed(address) {
      const record = recordOf(address);
      const now = clock.monotonic();
      if (record.failures > 0 && record.nextAt + FORGET_AFTER_MS < now) record.failures = 0;
      record.failures += 1;
      record.nextAt = now + Math.min(FIRST_PAUSE_MS * 2 ** Math.min(record.failures - 1, 10), LONGEST_PAUSE_MS);
      return record.failures;
    },
  };
}
