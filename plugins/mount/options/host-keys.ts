/** SFTP tells its machine by a host key, which rclone checks only where the connection says against what. */
import type { ConnectionConfig } from 'mountkeeper';

type Shown = Pick<ConnectionConfig, 'type' | 'options'>;

const CHECKED_BY = ['known_hosts_file', 'host_keys'];

/**
 * Whether somebody else could answer at the address of the NAS unnoticed. Not known where a command of its own connects
 * (`ssh`), beside which rclone heeds none of these options.
 */
export function checksNoHostKey({ type, options }: Shown): boolean {
  return (
    type === 'sftp' &&
    (options['ssh'] ?? '') === '' &&
    CHECKED_BY.every((name) => options[name] === undefined)
  );
}

/** Sentences for whoever sets the connection up. */
export function hostKeyDoubts(connection: Shown): readonly string[] {
  if (!checksNoHostKey(connection)) return [];
  return [
    'without known_hosts_file the host key of the NAS is not checked: whoever answers at its address gets what is ' +
      'sent, passwords too; `mountkeeper doctor` says how to have it checked',
  ];
}
