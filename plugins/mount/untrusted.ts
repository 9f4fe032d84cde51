import type { Config, ConfigProblem } from 'mountkeeper';

/**
 * What a document that came over HTTP may not bring in or change: whatever makes the daemon run a program, or read a file of
 * this machine as a command. The file on disk may.
 */
const RUNS_A_PROGRAM = /(^|_)(command|cmd|exec|program|hook)(_|$)|^(ssh|metadata_mapper|md5sum_command|sha1sum_command|server_command|bearer_token_command|password_command|copy_links_command|process)$/;
/** Any `name=value` inside a connection string, with the name in any of the spellings that rclone takes. */
const OPTION_IN_STRING = /([a-z0-9_.-]+)\s*=/gi;

export function runsProgram(name: string): boolean {
  return RUNS_A_PROGRAM.test(name.toLowerCase().replaceAll('-', '_').replace(/^.*\./, ''));
}

/** Names in a value that would run a program once rclone reads it as a connection string. */
export function programsInValue(value: unknown): readonly string[] {
  if (typeof value !== 'string' || !value.includes(':')) return [];
  return [...value.matchAll(OPTION_IN_STRING)].map((match) => match[1] ?? '').filter(isProgramOption);
}

/** In a connection string the name may carry the backend's prefix: `sftp_ssh`, `webdav_bearer_token_command`. */
function isProgramOption(name: string): boolean {
  return runsProgram(name) || /[_-]ssh$/i.test(name);
}

/** Options whose value rclone reads as the name of a remote, which may be a connection string. */
const NAMES_REMOTES = /(^|_)(remote|upstreams)$/;

/** What a reference leads to is read later, and may be another text by then. */
function isHidden(name: string, value: unknown): boolean {
  return typeof value === 'object' && value !== null && NAMES_REMOTES.test(name.toLowerCase().replaceAll('-', '_'));
}

export function checkUntrusted(next: Config, current: Config): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (next.mount.rclone !== current.mount.rclone) {
    problems.push({ path: 'mount.rclone', message: 'mount.rclone names a program and can only be changed in the file on disk' });
  }
  next.connections.forEach((connection, index) => {
    const known = current.connections.find((one) => one.name === connection.name);
    problems.push(...connectionChanges(connection, known, `connections[${index}].options`));
  });
  return [...problems, ...next.shares.flatMap((share, index) => remotePathProblem(share.remote_path, current.shares[index]?.remote_path, index))];
}

type Connection = Config['connections'][number];

function connectionChanges(connection: Connection, known: Connection | undefined, path: string): ConfigProblem[] {
  return Object.entries(connection.options ?? {}).flatMap(([name, value]) => {
    const isSame = known?.type === connection.type && JSON.stringify(known.options[name]) === JSON.stringify(value);
    if (isSame) return [];
    if (isHidden(name, value)) return [{ path: `${path}.${name}`, message: `the option "${name}" of connection "${connection.name}" names a remote and can be a reference only in the file on disk` }];
    const program = isProgramOption(name) ? name : programsInValue(value)[0];
    if (program === undefined) return [];
    return [{ path: `${path}.${name}`, message: `the option "${program}" of connection "${connection.name}" runs a program and can only be set in the file on disk` }];
  });
}

/** A remote path is joined to a fixed remote's name, so it cannot name another remote; refused all the same if it tries. */
function remotePathProblem(path: string, current: string | undefined, index: number): ConfigProblem[] {
  const program = path === current ? undefined : programsInValue(path)[0];
  return program === undefined ? [] : [{ path: `shares[${index}].remote_path`, message: `a remote_path cannot carry the option "${program}"` }];
}
