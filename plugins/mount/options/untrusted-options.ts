/**
 * What a document over HTTP may say about connections and shares. An allowlist: somebody who knows the
 * API's password may point shares at any NAS, but may not make rclone use a file, a program or another
 * remote of this machine, or send a secret elsewhere that only the file refers to.
 */
import { isDeepStrictEqual } from 'node:util';
import { onlyInFile } from 'mountkeeper';
import type { Config, ConfigProblem, ConnectionConfig, ShareConfig } from 'mountkeeper';
import { backendOf, kindOf, valueProblem } from './backends.ts';
import type { Backend } from './backends.ts';
import { leadsHere } from './this-machine.ts';

const LONGEST_PATH = 4_096;
const NOT_TAKEN = 'and is not taken over HTTP';

export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  const known = new Map(current.connections.map((connection) => [connection.name, connection]));
  return [
    ...next.connections.flatMap((connection, index) =>
      connectionProblems(connection, known.get(connection.name), `connections[${index}]`),
    ),
    ...next.shares.flatMap((share, index) => shareProblems(share, index, next, current)),
  ];
}

/**
 * True when only the file may change where this connection leads: it uses something of this machine, or a
 * secret that the API never saw.
 */
export function isBound(connection: ConnectionConfig): boolean {
  return newProblems(connection, '').length > 0;
}

function connectionProblems(
  connection: ConnectionConfig,
  known: ConnectionConfig | undefined,
  path: string,
): ConfigProblem[] {
  if (isDeepStrictEqual(connection, known)) return [];
  return known && isBound(known) ? changeProblems(connection, known, path) : newProblems(connection, path);
}

/** Checks a connection that is new, or one that contains only what HTTP could have set. */
function newProblems({ name, type, options }: ConnectionConfig, path: string): ConfigProblem[] {
  const backend = backendOf(type);
  const kind = `the type "${type}" of the connection "${name}"`;
  if (!backend) return [problem(`${path}.type`, `${kind} is not taken over HTTP`)];
  const found = Object.entries(options ?? {}).flatMap(([option, value]) =>
    optionProblems(backend, { name, option, value }, `${path}.options.${option}`),
  );
  if (type !== 'sftp' || options?.['pass'] || options?.['key_pem']) return found;
  // Without these, rclone would ask the ssh-agent of the daemon's user.
  const what = `the connection "${name}" has neither pass nor key_pem ${NOT_TAKEN}`;
  return [...found, problem(`${path}.options`, what)];
}

interface Given {
  readonly name: string;
  readonly option: string;
  readonly value: unknown;
}

function optionProblems(backend: Backend, { name, option, value }: Given, path: string): ConfigProblem[] {
  const kind = kindOf(backend, option);
  const what = `the option "${option}" of the connection "${name}"`;
  if (kind === undefined) return [problem(path, `${what} is not taken over HTTP`)];
  if (typeof value === 'object') return [problem(path, `${what} is a reference ${NOT_TAKEN}`)];
  const wrong = valueProblem(kind, value as string | number | boolean);
  return wrong === undefined ? [] : [problem(path, `${what} ${wrong} ${NOT_TAKEN}`)];
}

/**
 * For a bound connection: options that decide where it leads, and as whom, cannot be changed. The whole
 * connection may be removed.
 */
function changeProblems(next: ConnectionConfig, known: ConnectionConfig, path: string): ConfigProblem[] {
  const { name, type, options } = next;
  const reason = `the connection "${name}" uses what only the configuration file may name, so its`;
  if (type !== known.type) return [problem(`${path}.type`, `${reason} type cannot be changed over HTTP`)];
  const backend = backendOf(type);
  const all = new Set([...Object.keys(known.options ?? {}), ...Object.keys(options ?? {})]);
  const changed = [...all].filter((option) => !isDeepStrictEqual(options?.[option], known.options?.[option]));
  return changed.flatMap((option) => {
    const at = `${path}.options.${option}`;
    if (!backend || !Object.hasOwn(backend.tuning, option)) {
      return [problem(at, `${reason} option "${option}" cannot be changed over HTTP`)];
    }
    const value = options?.[option];
    return value === undefined ? [] : optionProblems(backend, { name, option, value }, at);
  });
}

function shareProblems(share: ShareConfig, index: number, next: Config, current: Config): ConfigProblem[] {
  const known = current.shares.find((one) => one.name === share.name);
  const connection = next.connections.find((one) => one.name === share.connection);
  const path = `shares[${index}]`;
  return [
    ...(share.exec === true ? programProblems(share, known, next, current) : []).map((why) =>
      problem(path, why),
    ),
    ...mountPointProblems(share, known, next.mount.root).map((why) => problem(`${path}.mount_point`, why)),
    ...remotePathProblems(share, known).map((why) => problem(`${path}.remote_path`, why)),
    ...(connection && mayHoldThisMachine(connection)
      ? diskProblems(share, known).map((why) => problem(path, why))
      : []),
  ];
}

/** Programs would be run from another NAS. */
function programProblems(
  share: ShareConfig,
  known: ShareConfig | undefined,
  next: Config,
  current: Config,
): string[] {
  const connectionOf = (config: Config, name: string | undefined): ConnectionConfig | undefined =>
    config.connections.find((one) => one.name === name);
  const isSame =
    share.connection === known?.connection &&
    share.remote_path === known.remote_path &&
    isDeepStrictEqual(connectionOf(next, share.connection), connectionOf(current, known.connection));
  return isSame
    ? []
    : [`programs may be run from the share "${share.name}", so where it leads cannot be changed over HTTP`];
}

function mountPointProblems(share: ShareConfig, known: ShareConfig | undefined, root: string): string[] {
  const at = share.mount_point;
  if (at === known?.mount_point) return [];
  const prefix = root.endsWith('/') ? root : `${root}/`;
  const isOdd = at.length > LONGEST_PATH || /[\x00-\x1f\x7f]/.test(at) || at.split('/').includes('..');
  if (!isOdd && at.startsWith(prefix) && at.length > prefix.length) return [];
  return [
    `the mount point of share "${share.name}" is no plain path below mount.root (${root}) ${NOT_TAKEN}`,
  ];
}

/** Appended to a fixed remote's name, the path cannot name another remote; attempts are refused anyway. */
function remotePathProblems(share: ShareConfig, known: ShareConfig | undefined): string[] {
  const path = share.remote_path;
  if (path === known?.remote_path) return [];
  const where = `the remote_path of share "${share.name}"`;
  if (path.length > LONGEST_PATH) return [`${where} is longer than ${LONGEST_PATH} characters ${NOT_TAKEN}`];
  const isConnectionString =
    path.trimStart().startsWith(':') || (path.includes(':') && /,\s*[\w.-]+\s*=/.test(path));
  return isConnectionString ? [`${where} reads like a connection string ${NOT_TAKEN}`] : [];
}

/**
 * True for the local disk, for connections that may lead to it, and for this machine's own server with a
 * key that only the file names: with root's key on this machine, any folder of it could be shared and
 * written.
 */
function mayHoldThisMachine(connection: ConnectionConfig): boolean {
  const backend = backendOf(connection.type);
  if (!backend) return true;
  const hasOwnMeans = Object.keys(connection.options ?? {}).some(
    (option) => kindOf(backend, option) === undefined,
  );
  return hasOwnMeans && leadsHere(connection);
}

/** For a share on the local disk, or on a connection that may lead there, only the file decides. */
function diskProblems(share: ShareConfig, known: ShareConfig | undefined): string[] {
  const where = `the share "${share.name}" lies on a connection that only the file may name, so`;
  if (known === undefined) return [`${where} it cannot be added over HTTP`];
  const isMoved = share.connection !== known.connection || share.remote_path !== known.remote_path;
  if (isMoved) return [`${where} its place cannot be changed over HTTP`];
  return known.read_only && !share.read_only ? [`${where} it cannot be made writable over HTTP`] : [];
}

function problem(path: string, what: string): ConfigProblem {
  return { path, message: onlyInFile(what) };
}
