import type { ConnectionConfig, Secrets } from 'mountkeeper';
import type { Provider } from './providers.ts';
import { obscure } from './obscure.ts';
import { hideOption } from './hidden-values.ts';
import { isPasswordOption } from './secret-options.ts';

/**
 * The remote's name in rclone, the same for every share, because it is part of the cache's path. A
 * connection in the environment or in a connection string would add a hash of its options to that path, and
 * dirty files would be stranded whenever an option changes (in every version); obscured passwords differ
 * each time. So the connection is written to a configuration file.
 */
export const REMOTE = 'nas';

export interface Backend {
  readonly secrets: Secrets;
  /** Undefined when the installed rclone cannot be asked. */
  readonly providers: readonly Provider[] | undefined;
}

/** Backends that can store a folder as an object of its own; without one, an empty folder is none there. */
export const HAS_FOLDER_OBJECTS: ReadonlySet<string> = new Set(['s3', 'google cloud storage', 'azureblob']);
const FOLDER_OBJECTS = 'directory_markers';

/** With folders stored as objects, where the backend can and its options say nothing of it. */
export function withFolders(connection: ConnectionConfig): ConnectionConfig {
  const { options, type } = connection;
  if (!HAS_FOLDER_OBJECTS.has(type) || FOLDER_OBJECTS in options) return connection;
  return { ...connection, options: { ...options, [FOLDER_OBJECTS]: 'true' } };
}

/** The connection's options with clear secrets, as text. Throws a sentence that names a missing secret. */
export function clearOptions(connection: ConnectionConfig, secrets: Secrets): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(connection.options ?? {}).map(([name, value]) => {
      const clear = typeof value === 'object' ? secrets.resolve(value) : String(value);
      hideOption(connection.type, name, clear);
      return [name, clear] as const;
    }),
  );
}

/** The text of the configuration file for one rclone. */
export function remoteConfigText(connection: ConnectionConfig, { secrets, providers }: Backend): string {
  return configText(connection.type, clearOptions(connection, secrets), providers);
}

/** The same of options that were read already. */
export function configText(
  type: string,
  clear: ReadonlyMap<string, string>,
  providers: Backend['providers'],
): string {
  const lines = [`[${REMOTE}]`, `type = ${type}`];
  for (const [name, value] of clear) {
    const isPassword = isPasswordOption(providers, type, name);
    lines.push(`${name} = ${quoted(isPassword ? obscure(value) : value, name)}`);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * Backquotes preserve quotes and outer spaces. A line break is impossible in the file; in keys it is
 * written as `\n`.
 */
function quoted(value: string, name: string): string {
  const line = value.trim();
  const end = name === 'key_pem' ? '\\n' : ' ';
  const single = /[\r\n]/.test(line) ? line.replaceAll(/\r\n|\r|\n/g, end) : value.replaceAll(/[\r\n]/g, '');
  return `\`${single}\``;
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
