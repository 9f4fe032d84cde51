/** Versions of rclone: which are too old, which one is known to work well, and what an older one misses. */

/** Three numbers, as in `v1.75.0`. */
export type Version = readonly [major: number, minor: number, patch: number];

/** The oldest supported rclone: all that this plugin needs exists from this version on. */
export const FLOOR: Version = [1, 70, 0];

/** The newest one that the tests of this version of Mountkeeper ran with. */
export const KNOWN_GOOD: Version = [1, 75, 2];

const NUMBER = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?$/;

/** `1.75.0`, `v1.75.0` or `v1.75`; undefined for anything else, such as a beta. */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch = '0'] = NUMBER.exec(text) ?? [];
  return major === undefined || minor === undefined
    ? undefined
    : [Number(major), Number(minor), Number(patch)];
}

/** Of the first line of `rclone version`: a distribution's `v1.75.0-DEV` counts as 1.75.0. */
export function versionIn(line: string): Version | undefined {
  return parseVersion(/v\d{1,4}\.\d{1,4}(?:\.\d{1,4})?/.exec(line.slice(0, 200))?.[0] ?? '');
}

/** As rclone writes it: `v1.75.0`. */
export function versionName(version: Version): string {
  return `v${version.join('.')}`;
}

/** Negative where `one` is the older. */
export function compareVersions(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
}

export function isOlder(one: Version, other: Version): boolean {
  return compareVersions(one, other) < 0;
}

/** What changes for a share, by the release that brought it; from rclone's list of changes. */
const GAINS: readonly (readonly [since: Version, gain: string])[] = [
  [[1, 71, 0], 'a share over SMB is mounted with fewer questions to the NAS'],
  [[1, 71, 1], 'transfers that share a limited number of connections do not block each other'],
  [[1, 73, 5], 'the remote control cannot be made to take its password off (CVE-2026-41176)'],
  [[1, 74, 3], 'the remote control runs no command for who has no password (CVE-2026-49980)'],
  [[1, 75, 0], 'a cached file whose copy was removed from the disk is fetched again, not an I/O error'],
  [[1, 75, 0], 'connections over SMB that fail while they are set up are closed'],
  [[1, 75, 0], 'a name of a file cannot run a command on an SFTP server with PowerShell (CVE-2026-71312)'],
];

/** What one gains by a newer one, in the order of the releases. */
export function gainsOver(version: Version): readonly string[] {
  return GAINS.filter(([since]) => isOlder(version, since)).map(([, gain]) => gain);
}
