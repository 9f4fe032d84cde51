/** What Debian reads about the package: fields, checksums, changelog. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Architecture } from './node-binary.ts';

export interface About {
  readonly version: string;
  readonly architecture: Architecture;
  /** KiB, as Debian counts them. */
  readonly installedKib: number;
}

export const MAINTAINER = 'The Mountkeeper authors <mountkeeper@packages.debian.org>';

/** Servers are suggested alone: their packages start services of their own on the ports of ours. */
export function controlFile({ version, architecture, installedKib }: About): string {
  return [
    'Package: mountkeeper',
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    `Maintainer: ${MAINTAINER}`,
    `Installed-Size: ${installedKib}`,
    'Section: net',
    'Priority: optional',
    'Pre-Depends: init-system-helpers (>= 1.54~)',
    'Depends: libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1 | libgcc1, fuse3, bindfs, mount, procps, iproute2, ' +
      'attr, passwd',
    'Recommends: rclone, libnss-wrapper, systemd, ca-certificates',
    'Suggests: samba, samba-vfs-modules, nfs-ganesha, nfs-ganesha-vfs, wsdd, avahi-daemon, pwauth, prometheus',
    'Description: shares of a NAS on the far side of a WAN that feel local',
    ' Mounts shares of a remote NAS or of cloud storage through rclone on a cache',
    ' on the local disk, watches the mounts and heals them, shows them over SMB, NFS',
    ' and WebDAV, and is steered by a dashboard, a JSON API and a command line.',
    ' .',
    ' What users write is not lost by a crash of rclone, of the daemon or of the',
    ' line: it waits on the disk and goes up.',
    ' .',
    ' Brings its own Node.js.',
    '',
  ].join('\n');
}

export function changelog(version: string, epochSeconds: number): string {
  const [day, date, month, year, time] = new Date(epochSeconds * 1000).toUTCString().split(/,? /);
  return [
    `mountkeeper (${version}) unstable; urgency=medium`,
    '',
    '  * What has changed stands in CHANGELOG.md.gz.',
    '',
    ` -- ${MAINTAINER}  ${day}, ${date} ${month} ${year} ${time} +0000`,
    '',
  ].join('\n');
}

/** A line for each file, by its path below the root. */
export async function checksums(root: string, paths: readonly string[]): Promise<string> {
  const lines: string[] = [];
  for (const path of paths) {
    lines.push(
      `${createHash('md5')
        .update(await readFile(join(root, path)))
        .digest('hex')}  ${path}`,
    );
  }
  return `${lines.join('\n')}\n`;
}
