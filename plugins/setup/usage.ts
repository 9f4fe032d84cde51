/** Arguments of the subcommands, as their usage lines show them. */

export const INIT_USAGE =
  '[--address ADDRESS] [--kind smb|sftp|webdav|ftp] [--user NAME] [--password-file FILE] [--folders LIST] ' +
  '[--folder FOLDER] [--lan-user NAME] [--lan-password-file FILE] [--no-lan] [--add] [--yes]';
export const IMPORT_USAGE =
  'rclone REMOTE[:PATH] | fstab MOUNTPOINT [--from FILE] [--name SHARE] [--untried] [--yes]';
