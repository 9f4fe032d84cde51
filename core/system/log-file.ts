/** The log file for those who read it: what the logger has open, whatever its path names by now. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { LogFileService } from '../services.ts';

/** `descriptor` is asked at each opening, since rotation changes it. */
export function readableLog(path: string, descriptor: () => number | undefined): LogFileService {
  return {
    path,
    async open() {
      const writing = descriptor();
      if (writing === undefined) throw new Error('no log file is open');
      // By the descriptor, never by the path: another file or a link may have taken its place.
      // Non-blocking, else a named pipe would hold a thread for ever.
      // eslint-disable-next-line no-bitwise
      const reading = await open(`/proc/self/fd/${writing}`, constants.O_RDONLY | constants.O_NONBLOCK);
      const { nlink } = await reading.stat();
      if (nlink > 0) return reading;
      await reading.close();
      throw new Error(`${path} was removed`);
    },
  };
}
