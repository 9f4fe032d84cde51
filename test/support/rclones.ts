/** The rclone versions that the machine offers: the one on the PATH and, where MOUNTKEEPER_RCLONE points to one, a current one. */
export interface RcloneChoice {
  readonly label: string;
  readonly command: string;
}

export function rclones(): readonly RcloneChoice[] {
  const current = process.env['MOUNTKEEPER_RCLONE'];
  const system = { label: "the system's rclone", command: 'rclone' };
  return current === undefined || current === '' ? [system] : [system, { label: 'the current rclone', command: current }];
}
