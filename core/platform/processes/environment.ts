/**
 * The environment of every child: a few variables of the daemon and what the caller gives, nothing else. A
 * variable such as `RCLONE_*` in the daemon's environment would change what a child does.
 */
const KEPT = ['HOME', 'LANG', 'TZ'] as const;
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

export function childEnvironment(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const environment: Record<string, string> = { PATH: searchPath() };
  for (const name of KEPT) {
    const value = process.env[name];
    if (value !== undefined) environment[name] = value;
  }
  return { ...environment, ...given };
}

/**
 * Folders for commands. The system's own are always included: a bare `su` or cron leaves out the ones that
 * hold server programs.
 */
function searchPath(): string {
  const folders = (process.env['PATH'] ?? '').split(':').filter((folder) => folder.startsWith('/'));
  return [...new Set([...folders, ...SYSTEM_FOLDERS])].join(':');
}
