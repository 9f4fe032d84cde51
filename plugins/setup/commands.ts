/** The subcommands; what they are made of is loaded when one is called, not by each start of the daemon. */
import type { CliCommand } from 'mountkeeper';
import { IMPORT_USAGE, INIT_USAGE } from './usage.ts';

export const initCommand: CliCommand = {
  name: 'init',
  usage: INIT_USAGE,
  summary:
    'Set up a NAS in at most six questions, or by flags: its address and account, which folders, and who on ' +
    'the LAN may use them.',
  run: async (cli) => (await import('./init/command.ts')).init(cli),
};

export const importCommand: CliCommand = {
  name: 'import',
  usage: IMPORT_USAGE,
  summary:
    'Take a remote from a configuration of rclone, or an entry of fstab (cifs, davfs, sshfs), into the ' +
    'configuration; its secrets go into files of their own.',
  run: async (cli) => (await import('./import/command.ts')).importForeign(cli),
};
