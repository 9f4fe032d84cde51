/**
 * What a document that came over HTTP may say of connections and shares. An allowlist: whoever knows the password of the API may lead
 * shares to any NAS, but may neither make rclone use a file, a program or another remote of this machine, nor have a secret that only
 * the file refers to sent elsewhere.
 */
import { isDeepStrictEqual } from 'node:util';
import { onlyInFile } from 'mountkeeper';
import type { Config, ConfigProblem, ConnectionConfig, ShareConfig } from 'mountkeeper';
import { backendOf, kindOf, valueProblem } from './backends.ts';
import type { Backend } from './backends.ts';

const LONGEST_PATH = 4_096;

export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  const known = new Map(current.connections.map((connection) => [connection.name, connection]));
  return [
    ...next.connections.flatMap((connection, index) => connectionProblems(connection, known.get(connection.name), `connections[${index}]`)),
    ...next.shares.flatMap((share, index) => shareProblems(share, index, next, current)),
  ];
}

/** Whether only the file may say where this connection leads: it uses something of this machine, or a secret that the API never saw. */
export function isBound(connection: ConnectionConfig): boolean {
  return newProblems(connection, '').length > 0;
}

function connectionProblems(connection: ConnectionConfig, known: ConnectionConfig | undefined, path: string): ConfigProblem[] {
  if (isDeepStrictEqual(connection, known)) return [];
  return known && isBound(known) ? changeProblems(connection, known, path) : newProblems(connection, path);
}

/** Of a connection that is new, or of which the file holds nothing that a document over HTTP could not hold. */
function newProblems({ name, type, options }: ConnectionConfig, path: string): ConfigProblem[] {
  const backend = backendOf(type);
  if (!backend) return [problem(`${path}.type`, `a connection of the type "${type}" ("${name}") is not taken over HTTP`)];
  const found = Object.entries(options ?? {}).flatMap(([option, value]) => optionProblems(backend, { name, option, value }, `${path}.options.${option}`));
  // rclone would ask the ssh-agent of the daemon's user.
  const asksAgent = type === 'sftp' && (options?.['pass'] ?? '') === '' && (options?.['key_pem'] ?? '') === '';
  return asksAgent ? [...found, problem(`${path}.options`, `the connection "${name}" has neither pass nor key_pem and is not taken over HTTP`)] : found;
}

interface Given { readonly name: string; readonly option: string; readonly value: unknown }

function optionProblems(backend: Backend, { name, option, value }: Given, path: string): ConfigProblem[] {
  const kind = kindOf(backend, option);
  if (kind === undefined) return [problem(path, `the option "${option}" of the connection "${name}" is not taken over HTTP`)];
  if (typeof value === 'object') return [problem(path, `the option "${option}" of the connection "${name}" is a reference and is not taken over HTTP`)];
  const wrong = valueProblem(kind, value as string | number | boolean);
  return wrong === undefined ? [] : [problem(path, `the option "${option}" of the connection "${name}" ${wrong} and is not taken over HTTP`)];
}

/** Of a bound connection: all that decides where it leads, and as whom, stays as the file says it. It may go as a whole. */
function changeProblems(connection: ConnectionConfig, known: ConnectionConfig, path: string): ConfigProblem[] {
  const { name, type, options } = connection;
  const reason = `the connection "${name}" uses what only the configuration file may name, so its`;
  if (type !== known.type) return [problem(`${path}.type`, `${reason} type cannot be changed over HTTP`)];
  const backend = backendOf(type);
  const names = new Set([...Object.keys(known.options ?? {}), ...Object.keys(options ?? {})]);
  return [...names].filter((option) => !isDeepStrictEqual(options?.[option], known.options?.[option])).flatMap((option) => {
    const at = `${path}.options.${option}`;
    if (!backend || !Object.hasOwn(backend.tuning, option)) return [problem(at, `${reason} option "${option}" cannot be changed over HTTP`)];
    return options?.[option] === undefined ? [] : optionProblems(backend, { name, option, value: options[option] }, at);
  });
}

function shareProblems(share: ShareConfig, index: number, next: Config, current: Config): ConfigProblem[] {
  const known = current.shares.find((one) => one.name === share.name);
  const connection = next.connections.find((one) => one.name === share.connection);
  const path = `shares[${index}]`;
  return [
    ...mountPointProblems(share, known, next.mount.root).map((why) => problem(`${path}.mount_point`, why)),
    ...remotePathProblems(share, known).map((why) => problem(`${path}.remote_path`, why)),
    ...(connection && !backendOf(connection.type) ? diskProblems(share, known).map((why) => problem(path, why)) : []),
  ];
}

function mountPointProblems({ name, mount_point: mountPoint }: ShareConfig, known: ShareConfig | undefined, root: string): string[] {
  if (mountPoint === known?.mount_point) return [];
  // eslint-disable-next-line no-control-regex
  const isOdd = mountPoint.length > LONGEST_PATH || /[\x00-\x1f\x7f]/.test(mountPoint) || mountPoint.split('/').includes('..');
  const isBelow = mountPoint.startsWith(`${root.replace(/\/+$/, '')}/`) && mountPoint.replace(/\/+$/, '').length > root.replace(/\/+$/, '').length;
  return isBelow && !isOdd ? [] : [`the mount point of share "${name}" does not lie below mount.root (${root}) and is not taken over HTTP`];
}

/** It is joined to a fixed remote's name, so it cannot name another remote; what tries is refused all the same. */
function remotePathProblems({ name, remote_path: path }: ShareConfig, known: ShareConfig | undefined): string[] {
  if (path === known?.remote_path) return [];
  if (path.length > LONGEST_PATH) return [`the remote_path of share "${name}" is longer than ${LONGEST_PATH} characters and is not taken over HTTP`];
  const isConnectionString = path.trimStart().startsWith(':') || (path.includes(':') && /,\s*[\w.-]+\s*=/.test(path));
  return isConnectionString ? [`the remote_path of share "${name}" reads like a connection string and is not taken over HTTP`] : [];
}

/** A share on the disk of this machine, or on what may lead there, shows what the file says and nothing else. */
function diskProblems(share: ShareConfig, known: ShareConfig | undefined): string[] {
  const where = `the share "${share.name}" lies on a connection that only the configuration file may bring in, so`;
  if (known === undefined) return [`${where} it cannot be added over HTTP`];
  if (share.connection !== known.connection || share.remote_path !== known.remote_path) return [`${where} its place cannot be changed over HTTP`];
  return known.read_only && !share.read_only ? [`${where} it cannot be made writable over HTTP`] : [];
}

function problem(path: string, what: string): ConfigProblem {
  return { path, message: onlyInFile(what) };
}
