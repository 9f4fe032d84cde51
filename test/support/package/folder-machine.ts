/** A machine that is nothing but a folder, for the maintainer scripts of the Debian package. */
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { PROJECT } from '../../runner/test-files.ts';
import { run } from './build-packages.ts';

const DEBIAN = `${PROJECT}config/debian/`;

export interface FolderMachine {
  at(path: string): string;
  script(
    which: string,
    args: readonly string[],
    env?: Record<string, string>,
    /** Words of the shell that calls it, in a mount namespace of their own. */
    before?: readonly string[],
  ): Promise<{ code: number; said: string }>;
}

/** Commands that maintainer scripts call are there and do nothing. */
export async function folderMachine(t: TestContext): Promise<FolderMachine> {
  const house = await mkdtemp(join(tmpdir(), 'mountkeeper-scripts-'));
  t.after(() => rm(house, { recursive: true, force: true }));
  await mkdir(`${house}/bin`, { recursive: true });
  for (const command of [
    'systemctl',
    'systemd-sysusers',
    'systemd-tmpfiles',
    'deb-systemd-helper',
    'deb-systemd-invoke',
  ]) {
    await writeFile(`${house}/bin/${command}`, '#!/bin/sh\n');
    await chmod(`${house}/bin/${command}`, 0o755);
  }
  for (const folder of ['etc', 'var/lib', 'var/cache', 'mnt', 'usr/share/mountkeeper'])
    await mkdir(`${house}/${folder}`, { recursive: true });
  await writeFile(
    `${house}/usr/share/mountkeeper/mountkeeper.toml`,
    await readFile(`${DEBIAN}mountkeeper.toml`),
  );
  return {
    at: (path) => `${house}/${path}`,
    async script(which, args, env = {}, before = []) {
      const text = await readFile(`${DEBIAN}${which}`, 'utf8');
      await writeFile(
        `${house}/${which}`,
        text
          .replaceAll(/\/(etc|var\/lib|var\/cache|mnt|run\/systemd)(?=\/)/g, `${house}/$1`)
          .replaceAll(/\/usr\/(share|lib)\/mountkeeper/g, `${house}/usr/$1/mountkeeper`)
          .replaceAll('/proc/self/mountinfo', `${house}/mountinfo`),
      );
      const inside = `${before.join(' ')} sh ${house}/${which} "$@"`;
      const own = before.length === 0 ? [] : ['unshare', '--mount'];
      const [command = '', ...rest] = [...own, 'sh', '-c', inside, 'sh', ...args];
      const done = await run(command, rest, {
        env: { PATH: `${house}/bin:/usr/bin:/bin`, ...env },
      }).catch((error: { code: number; stderr: string }) => error);
      return { code: 'code' in done ? done.code : 0, said: done.stderr };
    },
  };
}

export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** In the default cache, as rclone keeps it; returns its path. */
export const cacheFile = async (at: (path: string) => string, isDirty: boolean): Promise<string> => {
  const content = at('var/cache/mountkeeper/files/vfs/files/a.txt');
  for (const [tree, text] of [
    ['vfs', 'words'],
    ['vfsMeta', `{"ModTime":"x","Dirty": ${String(isDirty)}}`],
  ]) {
    await mkdir(at(`var/cache/mountkeeper/files/${tree}/files`), { recursive: true });
    await writeFile(at(`var/cache/mountkeeper/files/${tree}/files/a.txt`), text ?? '');
  }
  return content;
};
