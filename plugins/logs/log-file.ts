/** The logger's open file with its line index. */
import { sep } from 'node:path';
import type { Config, LogFileService } from 'mountkeeper';
import { createLineIndex } from './line-index.ts';
import type { LinePage } from './line-index.ts';
import { chooseLines } from './log-query.ts';
import type { LogQuery } from './log-query.ts';

const NOTHING: LinePage = { totalLines: 0, entries: [] };

export interface LogFile {
  /** An empty result when there is no file or it cannot be read. */
  read(query: LogQuery): Promise<LinePage>;
}

/** A file below a mount would stop the whole daemon when that mount hangs. */
function isBelowMount(file: string, config: Config): boolean {
  return config.shares.some(({ mount_point: mountPoint }) => {
    const folder = mountPoint.endsWith(sep) ? mountPoint : mountPoint + sep;
    return file.startsWith(folder);
  });
}

export function createLogFile(source: () => LogFileService, config: () => Config): LogFile {
  const index = createLineIndex(() => source().open());
  return {
    async read(query) {
      const { path } = source();
      if (path === '' || isBelowMount(path, config())) return NOTHING;
      try {
        return await index.read(chooseLines(query));
      } catch {
        // The contract says that an unreadable log is an empty one.
        return NOTHING;
      }
    },
  };
}
