/**
 * A remote of a test of the uploader: a real rclone without a mount, over a server of the NAS folder or over
 * the folder itself.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { RemoteFiles } from 'mountkeeper';
import { withFolders } from '../../../plugins/mount/options/remote-config.ts';
import { createRcClient } from '../../../plugins/mount/rclone/control/remote-control.ts';
import { RemoteBelow } from '../../../plugins/mount/layer/remote-below.ts';
import { RcloneFiles } from '../../../plugins/mount/rclone/remote-files.ts';
import { NAS_PASSWORD, NAS_USER } from '../nas/nas.ts';
import { freePort } from '../platform/free-port.ts';
import { currentRclone, nasRclone } from '../nas/rclone-binaries.ts';
import { S3Bucket } from '../nas/s3-bucket.ts';
import { endSmbd, startSmbd } from '../nas/smbd.ts';
import { until } from '../platform/wait.ts';
import { clock } from './uploader-share.ts';

/**
 * `webdav` keeps no times; `local` has hashes; `smb` tells no case apart; `s3` is a bucket that begins with what is
 * in the folder.
 */
export type RemoteType = 'sftp' | 'webdav' | 'smb' | 's3' | 'local';

const SHARE = 'share';

export interface TestRemote {
  readonly files: RemoteFiles;
  /** How many files rclone has deleted on the remote so far, also before it renames another to their name. */
  deletes(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Starts rclone, and a server of the folder where the type has one, with these flags. `close` ends both.
 */
export async function startRemote(
  type: RemoteType,
  folder: string,
  flags: readonly string[] = [],
  vendor = 'other',
): Promise<TestRemote> {
  const env = {
    PATH: process.env['PATH'],
    HOME: `${folder}.home`,
    RCLONE_USER: NAS_USER,
    RCLONE_PASS: NAS_PASSWORD,
    RCLONE_RC_USER: 'u',
    RCLONE_RC_PASS: 'p',
  };
  const ends: (() => Promise<void>)[] = [];
  const run = (
    command: string,
    args: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ): void => {
    const child = spawn(command, args, { stdio: 'ignore', env: { ...env, ...more } });
    ends.push(() => end(child));
  };
  const [nasPort, port] = [await freePort(), await freePort()];
  const bucket = new S3Bucket(folder, nasPort);
  if (type === 'smb') {
    const login = { user: NAS_USER, password: NAS_PASSWORD };
    const room = `${folder}.smbd`;
    const smbd = await startSmbd({ shares: new Map([[SHARE, folder]]), room, port: nasPort, login });
    ends.push(() => endSmbd(smbd));
  } else if (type === 's3') {
    const server = bucket.serve('ignore');
    ends.push(() => end(server));
    await until('the bucket is filled', () => bucket.fill().then(() => true), { timeoutMs: 60_000 });
  } else if (type !== 'local')
    run(nasRclone(), [
      'serve',
      type,
      '--addr',
      `127.0.0.1:${nasPort}`,
      '--dir-cache-time',
      '0s',
      '--config=',
      ...flags,
      folder,
    ]);
  const rclone = currentRclone() ?? '';
  const connection =
    type === 's3'
      ? inEnvironment(bucket.options(nasPort))
      : await connectionTo(type, nasPort, { rclone, vendor });
  run(
    rclone,
    [
      'rcd',
      `--rc-addr=127.0.0.1:${port}`,
      '--config=',
      '--contimeout=3s',
      '--timeout=10s',
      '--low-level-retries=1',
      '--retries=1',
    ],
    connection,
  );
  const address = { port, user: 'u', password: 'p' };
  const fs = {
    local: `nas:${folder}`,
    smb: `nas:${SHARE}`,
    s3: `nas:${bucket.remotePath('')}`,
    sftp: 'nas:',
    webdav: 'nas:',
  }[type];
  const files = new RemoteBelow(type, () => 'rclone does not run');
  files.use(new RcloneFiles({ address, fs, type, clock }));
  const rc = createRcClient(address);
  await until(
    'the remote answers',
    () => rc.call('operations/list', { fs, remote: '' }, clock.deadline(5_000)).then(() => true),
    { timeoutMs: 30_000 },
  );
  return {
    files: withoutMount(files),
    deletes: async () =>
      (await rc.call<{ deletes: number }>('core/stats', { short: true }, clock.deadline(5_000))).deletes,
    close: async () => {
      rc.close();
      files.use(undefined);
      for (const close of ends) await close();
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** As a share with a write layer has it. */
function inEnvironment(options: Record<string, string>): Record<string, string> {
  const whole = { type: 's3', ...withFolders({ name: 'nas', type: 's3', options }).options };
  return Object.fromEntries(
    Object.entries(whole).map(([name, value]) => [`RCLONE_CONFIG_NAS_${name.toUpperCase()}`, String(value)]),
  );
}

async function connectionTo(
  type: RemoteType,
  port: number,
  { rclone, vendor }: { readonly rclone: string; readonly vendor: string },
): Promise<Record<string, string>> {
  if (type === 'local') return { RCLONE_CONFIG_NAS_TYPE: 'local' };
  const pass = await obscured(rclone);
  const common = {
    RCLONE_CONFIG_NAS_TYPE: type,
    RCLONE_CONFIG_NAS_USER: NAS_USER,
    RCLONE_CONFIG_NAS_PASS: pass,
  };
  if (type === 'sftp' || type === 'smb')
    return { ...common, RCLONE_CONFIG_NAS_HOST: '127.0.0.1', RCLONE_CONFIG_NAS_PORT: String(port) };
  return { ...common, RCLONE_CONFIG_NAS_URL: `http://127.0.0.1:${port}`, RCLONE_CONFIG_NAS_VENDOR: vendor };
}

async function obscured(rclone: string): Promise<string> {
  const child = spawn(rclone, ['obscure', '-'], { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.end(NAS_PASSWORD);
  let answer = '';
  child.stdout.on('data', (piece: Buffer) => (answer += piece.toString()));
  await once(child, 'close');
  return answer.trim();
}

/** There is no mount that could forget anything. */
function withoutMount(files: RemoteFiles): RemoteFiles {
  return new Proxy<RemoteFiles>(files, {
    get: (target, name) => {
      if (name === 'forget') return () => Promise.resolve();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value as (...all: unknown[]) => unknown).bind(target) : value;
    },
  });
}
