/** The log file for readers: the file that the logger has open, whatever its path names by now. */
import { constants, fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { LogFileService } from '../../contract/platform.ts';

/** `descriptor` is called at each opening, because rotation changes it. */
export function readableLog(path: string, descriptor: () => number | undefined): LogFileService {
  return {
    path,
    async open() {
      const writing = descriptor();
      if (writing === undefined) throw new Error('no log file is open');
      const written = fstatSync(writing);
      // Opened by the descriptor, not by the path: another file or a link may have taken its place.
      // Non-blocking, because opening a named pipe would block a thread for ever.
      // eslint-disable-next-line no-bitwise
      const reading = await open(`/proc/self/fd/${writing}`, constants.O_RDONLY | constants.O_NONBLOCK);
      const { dev, ino, nlink } = await reading.stat();
      if (nlink > 0 && dev === written.dev && ino === written.ino) return reading;
      await reading.close();
      // The log may have been reopened meanwhile, so that the number now names another file.
      throw new Error(nlink > 0 ? `${path} has just been opened anew; ask again` : `${path} was removed`);
    },
  };
}
