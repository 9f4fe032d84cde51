/**
 * Breaks that the tests must see, each with the test file that does. A break is one line: what stands in the
 * built file, exactly once, and what is put in its place. `npm run mutations` makes them, one after the
 * other, in a copy of the build.
 */
export interface Mutation {
  /** The fault that a user would have. */
  readonly fault: string;
  /** Of the sources; the break is made in what is built of it. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The test file, from `test/` and without its ending. */
  readonly test: string;
  /** Only the tests whose names contain it, where the file takes long. */
  readonly only?: string;
}

const COMMIT = 'plugins/webdav/proxy/writes/commit.ts';
const FAILED_COMMIT = 'plugins/webdav/proxy/writes/failed-commit';

export const MUTATIONS: readonly Mutation[] = [
  {
    fault: 'figures that are 6 s old still give all_synced',
    file: 'core/shares/monitor.ts',
    from: 'SYNCED_FRESH_MS = 4_000',
    to: 'SYNCED_FRESH_MS = 6_500',
    test: 'core/shares/monitor',
  },
  {
    fault: 'half a file over WebDAV stays when its share is mounted anew',
    file: 'core/shares/unmounting.ts',
    from: 'await quiesce(around, active.mount.shareName);',
    to: '',
    test: 'core/shares/runner-changes',
  },
  {
    fault: 'a frozen share with a file open for writing shows an empty folder',
    file: 'plugins/mount/lifecycle/freeze.ts',
    from: 'mount -i -n -c --bind --make-private . "$2" || exit 1',
    to: 'mount -i -n -t tmpfs mountkeeper-layer:photos "$2" || exit 1',
    test: 'plugins/mount/lifecycle/freeze',
  },
  {
    fault: 'who was in a frozen share before goes on writing',
    file: 'plugins/mount/lifecycle/freeze.ts',
    from: 'void makeReadOnlyLater(mount, tools, signal);',
    to: 'void makeReadOnlyLater(mount, tools, AbortSignal.abort());',
    test: 'plugins/mount/lifecycle/freeze',
  },
  {
    fault: 'who writes to a frozen share over WebDAV does not wait',
    file: 'plugins/webdav/proxy/upstream.ts',
    from: 'isToChange && this.isFrozen',
    to: 'isToChange && !this.#attached',
    test: 'plugins/webdav/proxy/proxy',
  },
  {
    fault: 'half a file over WebDAV is forgotten where a covered share does not show it',
    file: 'plugins/webdav/proxy/writes/take-back.ts',
    from: "(done === 'not seen' && !attached.leaving.aborted)",
    to: "done === 'not seen'",
    test: 'plugins/webdav/proxy/writes/uploads',
  },
  {
    fault: 'over TLS, keys are exchanged by the certificate itself',
    file: 'core/sdk/http/secure-server.ts',
    from: ':!kRSA',
    to: '',
    test: 'core/sdk/http/secure-server',
  },
  {
    fault: 'figures of any age give all_synced',
    file: 'core/shares/monitor.ts',
    from: 'this.#silenceMs() + this.#statsTookMs < SYNCED_FRESH_MS',
    to: 'true',
    test: 'core/shares/all-synced',
  },
  {
    fault: 'a daemon that stood still says that all is synced',
    file: 'core/status.ts',
    from: 'OLDEST_SYNCED_MS = 4_500',
    to: 'OLDEST_SYNCED_MS = 45_000',
    test: 'core/status',
  },
  {
    fault: 'the cache is written out every 30 s',
    file: 'plugins/mount/recovery/cache-sync.ts',
    from: 'WRITE_OUT_EVERY_MS = 5_000',
    to: 'WRITE_OUT_EVERY_MS = 30_000',
    test: 'plugins/mount/recovery/cache-sync',
  },
  {
    fault: 'what a power cut emptied goes up over what the NAS has',
    file: 'plugins/uploads/compare/late-writes.ts',
    from: 'entry.changedNs >= sinceNs',
    to: 'entry.changedNs < sinceNs',
    test: 'plugins/uploads/compare/late-writes',
  },
  {
    fault: 'after a clock that was set back, what is not on the disk seems to be',
    file: 'plugins/mount/recovery/boot-note.ts',
    from: 'found.mtimeMs > nowMs + STAMPS_LAG_MS',
    to: 'false',
    test: 'plugins/mount/recovery/power-cut',
  },
  {
    fault: 'a WebDAV upload that the engine refuses in the middle is not noted',
    file: COMMIT,
    from: '>= 500)',
    to: '>= 600)',
    test: FAILED_COMMIT,
  },
  {
    fault: 'a WebDAV upload whose engine goes away in the middle is not noted',
    file: COMMIT,
    from: 'if (!wasNeverReached(error) &&',
    to: 'if (false &&',
    test: FAILED_COMMIT,
  },
  {
    fault: 'a torn WebDAV upload is noted, and left to nobody',
    file: COMMIT,
    from: 'this.#left = await journal.leave(this.#upload);',
    to: '',
    test: FAILED_COMMIT,
  },
  {
    fault: 'the note of a WebDAV upload is not on the disk',
    file: 'plugins/webdav/proxy/writes/journal.ts',
    from: 'await writeWhole(this.#file(noted.id), JSON.stringify(noted));',
    to: '',
    test: FAILED_COMMIT,
  },
  {
    fault: 'a former rclone is not ended before a new mount',
    file: 'plugins/mount/lifecycle/mounter.ts',
    from: 'await endFormer(spec.share.name, tools);',
    to: '',
    test: 'e2e/mount/life',
    only: 'nobody adopted',
  },
  {
    fault: 'a name and a password that are divided elsewhere come in',
    test: 'plugins/auth/verifier',
    file: 'core/sdk/http/basic-credentials.ts',
    from: '${name.length}:${name}${word}',
    to: '${name}${word}',
  },
  {
    fault: 'a webhook is sent before it is saved',
    test: 'plugins/webhooks/delivery/outbox',
    file: 'plugins/webhooks/delivery/outbox.ts',
    from: 'never under another.\n        await saved();',
    to: 'never under another.',
  },
  {
    fault: 'the configuration is not on the disk before its name is',
    file: 'core/config/write.ts',
    from: '    }\n    await handle.sync();',
    to: '    }',
    test: 'core/config/write',
  },
  {
    fault: 'hash-password prints the password',
    file: 'plugins/auth/cli.ts',
    from: '{ hash }) : hash',
    to: '{ hash }) : hash + password',
    test: 'plugins/auth/hash-password',
  },
  {
    fault: 'an unexpected error takes the mounts down',
    file: 'core/cli/daemon-command.ts',
    from: 'void daemon.handOver().then((ended)',
    to: 'void daemon.stop().then((ended)',
    test: 'e2e/hostile/uncaught',
  },
  {
    fault: 'logs -f fails when it is interrupted',
    file: 'plugins/logs/cli.ts',
    from: '.catch((error) => orEnd(cli, from, error))',
    to: '',
    test: 'plugins/logs/cli',
  },
  {
    fault: 'tests that are gone are not missed',
    file: 'test/runner/tally.ts',
    from: '(counts[source] ?? 0) < count',
    to: 'false',
    test: 'runner/tally',
  },
  {
    fault: 'a test may be left out for any reason',
    file: 'test/runner/skips.ts',
    from: 'if (!rule)',
    to: 'if (!rule && reason === "")',
    test: 'runner/tally',
  },
  {
    fault: 'words that name no test file run nothing, and that is well',
    file: 'test/runner/test-files.ts',
    from: 'if (unknown.length > 0)',
    to: 'if (false)',
    test: 'runner/test-files',
  },
  {
    fault: 'a password that was not typed again goes where a document over HTTP leads the connection',
    test: 'core/config/secrets/shown-text',
    file: 'core/config/secrets/shown-text.ts',
    from: 'if (kept.length === 0)',
    to: 'if (true)',
  },
  {
    fault: 'a note with a password is shown',
    test: 'core/config/secrets/shown-text',
    file: 'core/config/secrets/shown-text.ts',
    from: 'if (isHarmless)',
    to: 'if (true)',
  },
  {
    fault: 'of two who write at the same moment both are told that they did',
    test: 'core/config/service',
    file: 'core/config/service.ts',
    from: 'basis && (() => this.#assertUnchanged(basis))',
    to: 'undefined',
  },
  {
    fault: 'cached files of shares that are not mounted are promised while the NAS is offline',
    test: 'plugins/dashboard/overview/sentence',
    file: 'plugins/dashboard/overview/sentence.ts',
    from: 'cutOff.length === 0 ? shares : shares.filter((share) => isAffected(share, cutOff))',
    to: 'shares.filter((share) => cutOff.includes(share.name))',
  },
  {
    fault: 'a NAS is set up with a password of nobody, and signed in to by another name',
    test: 'plugins/setup/answers',
    file: 'plugins/setup/answers.ts',
    from: "nas.user === '' && nas.password !== ''",
    to: 'false',
  },
  {
    fault: 'a change that cut its page off stays',
    test: 'api/config-trial',
    file: 'plugins/control-api/config/trial.ts',
    from: 'if (!isReachOver || running.isReached)',
    to: 'if (running.version !== "")',
  },
  {
    fault: 'a change that failed a share stays',
    test: 'api/config-trial',
    file: 'plugins/control-api/config/trial.ts',
    from: 'if (down.length > 0)',
    to: 'if (down.length > 99)',
  },
  {
    fault: 'a change stays that no share has tried, since its files went up by the former settings first',
    test: 'api/config-trial',
    file: 'plugins/control-api/config/trial.ts',
    from: 'for (const name of this.#waiting(running))',
    to: 'for (const name of this.#waiting(running).slice(99))',
  },
  {
    fault: 'a change stays that left a share mounted which nobody can list',
    test: 'api/config-trial',
    file: 'plugins/control-api/config/trial.ts',
    from: "health !== 'healthy' && judged",
    to: "health === 'failed' && judged",
  },
  {
    fault: 'secrets of an import go where a link leads to',
    test: 'plugins/setup/import/secret-files',
    file: 'plugins/setup/import/secret-files.ts',
    from: '!(await lstat(folder)).isDirectory()',
    to: 'false',
  },
  {
    fault: 'root obeys and writes the configuration of another user',
    test: 'plugins/setup/foreign-files',
    file: 'plugins/setup/offline.ts',
    from: 'return refuseForeignPlace(cli.configFile)',
    to: 'return Promise.resolve()',
  },
  {
    fault: 'a stranger in the network is the default before a password is asked for',
    test: 'plugins/setup/init/questions',
    file: 'plugins/setup/init/questions.ts',
    from: "usual: former ? joinAddress(former) : ''",
    to: 'usual: joinAddress(former ?? found[0])',
  },
  {
    fault: 'a download that hangs in the mount does not count any more',
    test: 'plugins/files/download',
    file: 'plugins/files/download/sender.ts',
    from: "child.once('exit', gone)",
    to: 'setTimeout(gone, 1)',
  },
  {
    fault: 'what is written goes to another disk where the NAS has lost one',
    test: 'plugins/mount/rclone/lost-root',
    file: 'plugins/mount/rclone/remote-files.ts',
    from: 'await root?.admit(signal)',
    to: 'void root?.admit(signal).catch(() => undefined)',
  },
  {
    fault: 'the empty mount point of a lost disk passes for the disk',
    test: 'plugins/mount/outage/root-check',
    file: 'plugins/mount/outage/root-check.ts',
    from: 'names.listed(listed, beganMs)',
    to: '(names.listed(listed, beganMs), true)',
  },
  {
    fault: 'a share that its users have emptied holds what they write next',
    test: 'plugins/mount/outage/root-names',
    file: 'plugins/mount/outage/root-names.ts',
    from: 'atMs < beganMs',
    to: 'true',
  },
  {
    fault: 'with the NAS away, smbd shows a folder that cannot be read as empty',
    file: 'plugins/mount/outage/permission-events.ts',
    from: '$isDenied ? $DENY | $EIO << 24 : $ALLOW',
    to: '$ALLOW',
    test: 'plugins/mount/outage/unreadable-folders',
  },
  {
    fault: 'with the NAS away, a process that hangs freezes its share',
    file: 'plugins/mount/outage/unreadable-folders.ts',
    from: 'unanswered < most',
    to: 'true',
    test: 'plugins/mount/outage/unreadable-folders',
  },
  {
    fault: 'an account that was locked still comes in over WebDAV after half a minute',
    file: 'plugins/webdav/proxy/system-users.ts',
    from: 'until > this.#clock.monotonic()',
    to: 'until > 0',
    test: 'plugins/webdav/proxy/system-users',
  },
  {
    fault: 'root and accounts of services may log in over WebDAV',
    file: 'plugins/webdav/system/group.ts',
    from: 'uid >= FIRST_UID && ',
    to: '',
    test: 'plugins/webdav/system/accounts',
  },
  {
    fault: 'with users of the machine alone everybody is let in over WebDAV without a password',
    file: 'plugins/webdav/exporter/open-to-all.ts',
    from: ' && group === undefined',
    to: '',
    test: 'plugins/webdav/backends/settings',
  },
];
