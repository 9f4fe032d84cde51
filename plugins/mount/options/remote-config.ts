import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ConnectionConfig, Processes, Secrets } from 'mountkeeper';
import type { Provider } from './providers.ts';
import { obscure } from '../rclone/installed.ts';
import { hideOption } from './hidden-values.ts';
import { isPasswordOption } from './secret-options.ts';

/**
 * The remote's name, the same for every share: it is part of the cache's path. A connection given in the
 * environment or in a connection string would add a hash of its options to that path and strand dirty files
 * whenever one changes (both versions do), and passwords are obscured differently each time; so the
 * connection stands in a configuration file.
 */
export const REMOTE = 'nas';

export interface Backend {
  readonly command: string;
  readonly processes: Processes;
  readonly secrets: Secrets;
  /** Undefined when the installed rclone cannot be asked. */
  readonly providers: readonly Provider[] | undefined;
}

/** The connection's options in clear, as text. Throws a sentence naming the secret that is missing. */
export function clearOptions(connection: ConnectionConfig, secrets: Secrets): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(connection.options ?? {}).map(([name, value]) => {
      const clear = typeof value === 'object' ? secrets.resolve(value) : String(value);
      hideOption(connection.type, name, clear);
      return [name, clear] as const;
    }),
  );
}

/** The whole text of the configuration file that one rclone reads. */
export async function remoteConfigText(connection: ConnectionConfig, backend: Backend): Promise<string> {
  const lines = [`[${REMOTE}]`, `type = ${connection.type}`];
  for (const [name, value] of clearOptions(connection, backend.secrets)) {
    const isPassword = isPasswordOption(backend.providers, connection.type, name);
    lines.push(
      `${name} = ${quoted(isPassword ? await obscure(backend.processes, backend.command, value) : value, name)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Backquotes keep quotes and outer spaces; a line end cannot stand in the file, and in keys it is written
 * `\n`.
 */
function quoted(value: string, name: string): string {
  const line = value.trim();
  const end = name === 'key_pem' ? '\\n' : ' ';
  const single = /[\r\n]/.test(line) ? line.replaceAll(/\r\n|\r|\n/g, end) : value.replaceAll(/[\r\n]/g, '');
  return `\`${single}\``;
}

/** Written beside and renamed, readable by the daemon's user alone. */
export async function writeRemoteConfig(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const beside = `${file}.new`;
  await rm(beside, { force: true });
  await writeFile(beside, text, { mode: 0o600, flag: 'wx' });
  await chmod(beside, 0o600);
  await rename(beside, file);
}

/**
 * Backends that renew a token themselves must be able to write it back; for all others the file is needed at
 * the start only.
 */
export function keepsConfig(connection: ConnectionConfig): boolean {
  return Object.keys(connection.options ?? {}).some(
    (name) => name === 'token' || name === 'access_token' || name === 'refresh_token',
  );
}
