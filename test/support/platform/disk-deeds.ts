/** In which order this process has files on the disk, renamed and removed: what a loss of power would leave. */
import fsp from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import type { TestContext } from 'node:test';

/**
 * What is written to the disk, renamed and removed from now on, in this order, by paths below
 * `root`. A removal does nothing but be told.
 */
export function diskDeeds(t: TestContext, root: string): readonly string[] {
  const deeds: string[] = [];
  const { rename, open } = fsp;
  const tell = (deed: string, ...files: readonly string[]): void =>
    void deeds.push(
      [deed, ...files.map((file) => path.relative(root, file).replace(/[0-9a-f]{12}/g, '#'))].join(' '),
    );
  t.mock.method(fsp, 'rm', (file: string) => Promise.resolve(tell('remove', file)));
  t.mock.method(fsp, 'rename', (from: string, to: string) => {
    tell('rename', from, to);
    return rename(from, to);
  });
  t.mock.method(fsp, 'open', async (file: string, flags: string | number, mode?: number) => {
    const handle = await open(file, flags, mode);
    const { sync } = handle;
    handle.sync = () => {
      tell('sync', file);
      return sync.call(handle);
    };
    return handle;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return deeds;
}
