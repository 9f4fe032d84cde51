/** A NAS on loopback: a real server of a generated folder (rclone's, or smbd), as a child of the test. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, openSync } from 'node:fs';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ConnectionText } from '../config/config-text.ts';
import { freePort } from '../platform/free-port.ts';
import { nasRclone } from './rclone-binaries.ts';
import { S3Bucket } from './s3-bucket.ts';
import { endSmbd, startSmbd } from './smbd.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';

/** The one login of every test NAS. */
export const NAS_USER = 'keeper';
export const NAS_PASSWORD = 'n4s-pass-Wort-7781';
const LOGIN = { user: NAS_USER, password: NAS_PASSWORD };

/**
 * Over SMB, each folder in the NAS's own is a share; those that are there when it starts. Over S3, what lies in
 * the NAS's folder at the first start is brought into a bucket, and the folder is of no use any more.
 */
export type NasProtocol = 'sftp' | 'webdav' | 'smb' | 's3';

export interface NasTraits {
  readonly name?: string;
  readonly protocol?: NasProtocol;
  /** Path below the NAS folder → bytes of random content. */
  readonly files?: Readonly<Record<string, number>>;
  readonly start?: boolean;
}

/** One server of a folder. Ended with its scratch folder. */
export class Nas {
  readonly dir: string;
  readonly port: number;
  private readonly protocol: NasProtocol;
  private child: ChildProcess | undefined;
  private readonly bucket: S3Bucket | undefined;

  private constructor(scratch: Scratch, port: number, traits: NasTraits) {
    this.port = port;
    this.protocol = traits.protocol ?? 'sftp';
    this.dir = scratch.path(traits.name ?? 'nas');
    this.bucket = traits.protocol === 's3' ? new S3Bucket(this.dir, port) : undefined;
  }

  /** Makes the folder and its files, and starts the server unless told not to. */
  static async create(scratch: Scratch, traits: NasTraits = {}): Promise<Nas> {
    const nas = new Nas(scratch, await freePort(), traits);
    await mkdir(nas.dir, { recursive: true });
    for (const [path, bytes] of Object.entries(traits.files ?? {})) await nas.put(path, bytes);
    scratch.defer(() => nas.stop());
    if (traits.start !== false) await nas.start();
    return nas;
  }

  /** Starts the server; resolves when it accepts connections. Rejects after 30 s. */
  async start(): Promise<void> {
    const log = openSync(`${this.dir}.log`, 'a');
    this.child =
      this.protocol === 'smb' ? await this.serveSmb(log) : (this.bucket?.serve(log) ?? this.serve(log));
    await until(`the NAS listens on ${this.port}`, () => this.answers(), { timeoutMs: 30_000 });
    await this.bucket?.fill();
  }

  private async serveSmb(log: number): Promise<ChildProcess> {
    const folders = (await readdir(this.dir, { withFileTypes: true })).filter((one) => one.isDirectory());
    const shares = new Map(folders.map(({ name }) => [name, this.path(name)]));
    return startSmbd({ shares, room: `${this.dir}.smbd`, port: this.port, log, login: LOGIN });
  }

  private serve(log: number): ChildProcess {
    const args = [
      'serve',
      this.protocol,
      '--addr',
      `127.0.0.1:${this.port}`,
      '--dir-cache-time',
      '0s',
      '--cache-dir',
      `${this.dir}.cache`,
      this.dir,
    ];
    // Not on the command line, which can be read by everyone.
    const env = {
      PATH: process.env['PATH'],
      HOME: `${this.dir}.home`,
      RCLONE_USER: NAS_USER,
      RCLONE_PASS: NAS_PASSWORD,
    };
    return spawn(nasRclone(), args, { stdio: ['ignore', log, log], env });
  }

  /** Kills the server; resolves when it has ended. */
  async stop(): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    if (this.protocol === 'smb') return endSmbd(child);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** Of a share: the path of one of the NAS's folders over its protocol. */
  remotePath(folder: string): string {
    return this.bucket?.remotePath(folder) ?? folder;
  }

  /** A folder on the local disk with what the NAS has in one of its folders now. The NAS must run. */
  async contents(folder: string): Promise<string> {
    return this.bucket?.contents(folder) ?? this.path(folder);
  }

  /** Deletes all that is in one of a bucket's folders, as another client would. The NAS must run. */
  async clear(folder: string): Promise<void> {
    if (this.bucket === undefined) throw new Error('only of a bucket');
    await this.bucket.clear(folder);
  }

  /** As `[[connections]]` of a configuration; through a relay when its port is given. */
  connection(name: string, port = this.port): ConnectionText {
    if (this.protocol === 'webdav') {
      return {
        name,
        type: 'webdav',
        options: { url: `http://127.0.0.1:${port}`, vendor: 'other', user: NAS_USER, pass: NAS_PASSWORD },
      };
    }
    if (this.bucket !== undefined) return { name, type: 's3', options: this.bucket.options(port) };
    return {
      name,
      type: this.protocol,
      options: { host: '127.0.0.1', port: String(port), user: NAS_USER, pass: NAS_PASSWORD },
    };
  }

  /** Writes a file of so many random bytes, past the server. */
  async put(path: string, bytes: number): Promise<void> {
    const file = join(this.dir, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, randomBytes(bytes));
  }

  /** The path of a file of the NAS on the local disk. */
  path(...parts: string[]): string {
    return join(this.dir, ...parts);
  }

  /** SHA-256 of a file, in hexadecimal. */
  checksum(path: string): Promise<string> {
    return checksumOf(this.path(path));
  }

  /** True when there is such a file or folder. */
  async has(path: string): Promise<boolean> {
    return stat(this.path(path)).then(
      () => true,
      () => false,
    );
  }

  /** Every file below a folder of the NAS, with its checksum. */
  async checksums(folder = ''): Promise<Map<string, string>> {
    const root = this.path(folder);
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    const sums = new Map<string, string>();
    for (const entry of entries.filter((one) => one.isFile())) {
      const file = join(entry.parentPath, entry.name);
      sums.set(relative(root, file), await checksumOf(file));
    }
    return sums;
  }

  /** What the server has printed. */
  log(): Promise<string> {
    return readFile(`${this.dir}.log`, 'utf8');
  }

  private async answers(): Promise<boolean> {
    const socket = createConnection({ port: this.port, host: '127.0.0.1' });
    try {
      await once(socket, 'connect');
      return true;
    } finally {
      socket.destroy();
    }
  }
}

/** Of a file on the local disk; never call it for a path below a mount. */
export async function checksumOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
