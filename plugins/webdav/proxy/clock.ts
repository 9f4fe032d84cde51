import { createClock } from 'mountkeeper/sdk';

/** The proxy is a process of its own, without the daemon's services: this is where its time comes from. */
export const clock = createClock();
