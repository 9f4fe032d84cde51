import { unlessAborted } from 'mountkeeper';
import type { Clock, ConnectionMonitor, ConnectionMonitors, NasAddress } from 'mountkeeper';
import { createDial, TIMED_OUT } from './dial.ts';
import type { Resolver } from './dial.ts';
import { nasAddress } from './nas-address.ts';

/** Even a NAS over a WAN answers within a fraction of this. */
const DIAL_TIMEOUT_MS = 2_000;

/** One monitor per address, shared by all connections and mounts that lead there. */
export function createConnectionMonitors(clock: Clock, resolve?: Resolver): ConnectionMonitors {
  const monitors = new Map<string, ConnectionMonitor>();
  const at = (address: NasAddress): ConnectionMonitor => {
    const key = JSON.stringify([address.host, address.port, address.manner]);
    const monitor = monitors.get(key) ?? createMonitor(address, clock, resolve);
    monitors.set(key, monitor);
    return monitor;
  };
  return {
    at,
    of: (connection) => {
      const address = nasAddress(connection);
      return address && at(address);
    },
  };
}

function createMonitor(address: NasAddress, clock: Clock, resolve?: Resolver): ConnectionMonitor {
  const dial = createDial(address, resolve);
  let underWay: Promise<string | undefined> | undefined;
  return {
    address,
    dial: (signal) => {
      const begin = (): Promise<string | undefined> =>
        (underWay ??= dial(clock.deadline(DIAL_TIMEOUT_MS)).finally(() => (underWay = undefined)));
      const isJoined = underWay !== undefined;
      // A dial that began earlier may have missed that the NAS is back. That it is there holds for all.
      const answer = begin().then((missing) =>
        isJoined && missing !== undefined && !signal.aborted ? begin() : missing,
      );
      // This caller stops waiting; the dial goes on for the others.
      return unlessAborted(signal, answer).catch(() => TIMED_OUT);
    },
  };
}
