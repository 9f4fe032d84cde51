/** What an entry of fstab says that its share will not do, in one note. */

type Options = readonly (readonly [name: string, value: string])[];

/**
 * Shown by name. Any other is counted alone: what a comma cut off a password looks like an option, too.
 */
const KNOWN = new Set(
  `guest uid gid forceuid forcegid cruid backupuid backupgid file_mode dir_mode noperm setuids nosetuids
  dynperm idsfromsid cifsacl modefromsid multiuser ip addr servern netbiosname vers sec seal sign iocharset
  cache soft hard nobrl noserverino serverino mfsymlinks sfu nounix unix nocase mapposix mapchars posixpaths
  noposixpaths snapshot max_channels multichannel rsize wsize actimeo echo_interval persistenthandles
  resilienthandles stricthostkeychecking umask idmap uidfile gidfile nomap allow_other allow_root
  default_permissions transform_symlinks follow_symlinks directport compression ciphers reconnect
  serveraliveinterval serveralivecountmax connecttimeout sshfs_sync no_check_root sftp_server ssh_protocol
  max_conns dir_cache kernel_cache delay_connect workaround conf exec suid dev`.split(/\s+/),
);

/** Of mount itself: they decide when it is mounted, which the daemon does by itself. So do those of systemd (`x-`). */
const HARMLESS = new Set(
  `defaults rw ro auto noauto nofail _netdev user users nouser owner group atime noatime relatime norelatime
  strictatime diratime nodiratime lazytime sync async noexec nosuid nodev silent loud mand nomand comment`.split(
    /\s+/,
  ),
);

/** None, or one. `taken`: names of options that are taken over, or have a note of their own. */
export function droppedNote(options: Options, taken: ReadonlySet<string>): readonly string[] {
  const dropped = options
    .map(([name]) => name.toLowerCase())
    .filter((name) => name !== '' && !taken.has(name) && !HARMLESS.has(name) && !name.startsWith('x-'));
  const known = [...new Set(dropped.filter((name) => KNOWN.has(name)))];
  const others = dropped.filter((name) => !KNOWN.has(name)).length;
  if (dropped.length === 0) return [];
  const more = others === 0 ? [] : [`${others} that ${others === 1 ? 'is' : 'are'} not known here`];
  return [
    `options of the entry that are not taken over: ${[...known, ...more].join(', ')}; who may do what in the share, ` +
      'its users and read_only_users say',
  ];
}
