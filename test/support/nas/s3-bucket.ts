/** A bucket of s3rver as a NAS. `config/setup --test` fetches it. */
import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { currentRclone } from './rclone-binaries.ts';

const SERVER = fileURLToPath(
  new URL('../../../../.cache/s3rver/node_modules/s3rver/bin/s3rver.js', import.meta.url),
);
const BUCKET = 'mountkeeper';
/** Its only login. */
const KEY = 'S3RVER';

export class S3Bucket {
  readonly #dir: string;
  readonly #port: number;

  /** `dir` has what the bucket begins with. */
  constructor(dir: string, port: number) {
    this.#dir = dir;
    this.#port = port;
  }

  serve(log: number | 'ignore'): ChildProcess {
    mkdirSync(this.#room, { recursive: true });
    const place = ['-d', this.#room, '-a', '127.0.0.1', '-p', String(this.#port)];
    return spawn(process.execPath, [SERVER, ...place, '--configure-bucket', BUCKET, '--silent'], {
      stdio: ['ignore', log, log],
      env: { PATH: process.env['PATH'] },
    });
  }

  /** Once. Folders become objects only where they are empty, as for most that others have made. */
  async fill(): Promise<void> {
    if (existsSync(this.#seen)) return;
    await this.#rclone('copy', '--create-empty-src-dirs', this.#dir, `nas:${BUCKET}`);
    mkdirSync(this.#seen);
  }

  remotePath(folder: string): string {
    return `${BUCKET}/${folder}`;
  }

  async contents(folder: string): Promise<string> {
    const there = `${this.#seen}/${folder}`;
    mkdirSync(there, { recursive: true });
    await this.#rclone('sync', '--create-empty-src-dirs', `nas:${this.remotePath(folder)}`, there);
    return there;
  }

  /** Deletes all that is in a folder, by another client. */
  async clear(folder: string): Promise<void> {
    await this.#rclone('delete', '--rmdirs', `nas:${this.remotePath(folder)}`);
  }

  /** Of a connection. */
  options(port: number): Record<string, string> {
    return {
      provider: 'Other',
      access_key_id: KEY,
      secret_access_key: KEY,
      endpoint: `http://127.0.0.1:${port}`,
      force_path_style: 'true',
    };
  }

  get #room(): string {
    return `${this.#dir}.bucket`;
  }

  get #seen(): string {
    return `${this.#dir}.seen`;
  }

  async #rclone(...args: string[]): Promise<void> {
    const options = { type: 's3', directory_markers: 'true', ...this.options(this.#port) };
    const named = Object.entries(options).map(([name, value]) => [
      `RCLONE_CONFIG_NAS_${name.toUpperCase()}`,
      value,
    ]);
    await promisify(execFile)(currentRclone(), ['--config=', '--transfers=16', '--checksum', ...args], {
      env: { PATH: process.env['PATH'], HOME: `${this.#dir}.home`, ...Object.fromEntries(named) },
      timeout: 120_000,
    });
  }
}
