/** SFTP tells its machine by a host key, which rclone checks only where the connection says against what. */
import type { ConnectionConfig } from 'mountkeeper';

const CHECKED_BY = ['known_hosts_file', 'host_keys'];

/** A sentence where nothing checks who answers at the address of the NAS; undefined elsewhere. */
export function hostKeyDoubt({
  type,
  options,
}: Pick<ConnectionConfig, 'type' | 'options'>): string | undefined {
  if (type !== 'sftp' || CHECKED_BY.some((name) => options[name] !== undefined)) return undefined;
  return (
    'no file of known hosts was found, and without known_hosts_file the host key of the NAS is not checked: whoever ' +
    'answers at its address gets what is sent, passwords too'
  );
}
