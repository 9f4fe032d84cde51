/** One share over WebDAV, and curl as its client. */
import { Daemon } from '../daemon/daemon.ts';
import type { ConfigParts } from '../config/config-text.ts';
import { Nas } from '../nas/nas.ts';
import { freePort } from '../platform/free-port.ts';
import { createScratch } from '../platform/scratch-folder.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { exportStatus, runClient } from './client-programs.ts';

/** The name of the share and of its one user, with the password. */
export const SHARE = 'team';
export const USER = 'alice';
export const PASSWORD = 'wonder';

export interface WebdavShare {
  readonly scratch: Scratch;
  /** Holds `team/from nas.bin`. */
  readonly nas: Nas;
  readonly daemon: Daemon;
  /** Address of a file of the share; without a path, of the share itself. */
  readonly url: (path?: string) => string;
  /** The status that the client was answered with. */
  readonly dav: (...args: string[]) => Promise<number>;
}

export interface WebdavShareOptions {
  /** Called before the daemon is started. */
  readonly prepare?: (daemon: Daemon, scratch: Scratch) => Promise<void>;
  /** Section `cache` of the configuration. */
  readonly cache?: ConfigParts['sections'][string];
}

/** Starts a NAS and a daemon that exports one share over WebDAV. When that fails, nothing of them is left. */
export async function openWebdavShare(name: string, options: WebdavShareOptions = {}): Promise<WebdavShare> {
  const scratch = await createScratch(name);
  try {
    return await openIn(scratch, options);
  } catch (error) {
    await scratch.close();
    throw error;
  }
}

async function openIn(scratch: Scratch, { prepare, cache }: WebdavShareOptions): Promise<WebdavShare> {
  const nas = await Nas.create(scratch, { files: { [`${SHARE}/from nas.bin`]: 300_000 } });
  const port = await freePort();
  const daemon = await Daemon.create(scratch, {
    connections: [nas.connection('nas')],
    shares: [{ name: SHARE, connection: 'nas', remote_path: SHARE }],
    sections: {
      mount: { write_back: '1s' },
      webdav: { enabled: true, port, users: [{ name: USER, password: PASSWORD }] },
      ...(cache && { cache }),
    },
  });
  await prepare?.(daemon, scratch);
  await daemon.start();
  await daemon.healthy();
  await until('WebDAV is served', async () => (await exportStatus(daemon)).webdav_running, {
    timeoutMs: 30_000,
  });
  const dav = async (...args: string[]): Promise<number> =>
    Number(
      (
        await runClient(
          'curl',
          ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-u', `${USER}:${PASSWORD}`, ...args],
          45_000,
        )
      ).output.slice(-3),
    );
  return { scratch, nas, daemon, url: (path = '') => `http://127.0.0.1:${port}/${SHARE}/${path}`, dav };
}
