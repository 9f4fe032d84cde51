/** The log file that the configuration names now, with the index that belongs to it. */
import { sep } from 'node:path';
import type { Config } from 'mountkeeper';
import { createLineIndex } from './line-index.ts';
import type { LineIndex, LinePage } from './line-index.ts';
import { chooseLines } from './log-query.ts';
import type { LogQuery } from './log-query.ts';

const NOTHING: LinePage = { totalLines: 0, entries: [] };

export interface LogFile {
  /** Nothing when no file is named or it cannot be read. */
  read(query: LogQuery): Promise<LinePage>;
}

/** A file below a mount would stop the whole daemon when that mount hangs. */
function isBelowMount(file: string, config: Config): boolean {
  return config.shares.some(({ mount_point: mountPoint }) => {
    const folder = mountPoint.endsWith(sep) ? mountPoint : mountPoint + sep;
    return file.startsWith(folder);
  });
}

export function createLogFile(config: () => Config): LogFile {
  let open: { readonly path: string; readonly index: LineIndex } | undefined;

  function indexOf(path: string): LineIndex {
    if (open?.path !== path) open = { path, index: createLineIndex(path) };
    return open.index;
  }

  return {
    async read(query) {
      const now = config();
      const path = now.log.file;
      if (path === '' || isBelowMount(path, now)) return NOTHING;
      try {
        return await indexOf(path).read(chooseLines(query));
      } catch {
        return NOTHING;
      }
    },
  };
}
