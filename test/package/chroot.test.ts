/**
 * `npm run package-test`: the Debian package as it is released, looked at by lintian, installed by apt into a
 * clean Debian that has nothing else, upgraded, downgraded and purged there. Without systemd: its units are tried
 * by test/e2e/package/installed.test.ts.
 */
import assert from 'node:assert/strict';
import { copyFile, readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { asVersion, buildDeb, run } from '../support/package/build-packages.ts';
import { cleanDebian, inside } from '../support/package/clean-debian.ts';
import { currentRclone } from '../support/nas/rclone-binaries.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';

/** Run in the clean Debian; a line is printed for each thing that was seen. */
const INSIDE = `
set -eu
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
export DEBIAN_FRONTEND=noninteractive PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
config=/etc/mountkeeper/mountkeeper.toml
apt-get -q update >/dev/null
apt-get -q install -y --no-install-recommends /old.deb >/dev/null 2>&1
echo "version $(mountkeeper --version)"
mountkeeper check | sed 's/.*: //; s/^/check /'
stat -c 'mode %a %n' /etc/mountkeeper /etc/mountkeeper/web-password $config

mkdir -p /srv/nas/files
echo 'from the NAS' >/srv/nas/files/a.txt
cat >$config <<'END'
[mount]
write_back = "1s"
[[connections]]
name = "nas"
type = "local"
[[shares]]
name = "files"
connection = "nas"
remote_path = "/srv/nas/files"
END
cp $config /config-before
wait_for() { for _ in $(seq 120); do eval "$1" && return 0; sleep 0.5; done; echo "never: $1"; return 1; }
start() { mountkeeper run >/daemon.log 2>&1 & daemon=$!; wait_for 'mountkeeper status 2>/dev/null | grep -q healthy'; }
start
echo "read $(cat /mnt/mountkeeper/files/a.txt)"
rclone=$(pgrep -x rclone | head -n 1)
mountkeeper metrics | grep -c '^mountkeeper_share_mounted{share="files"} 1' | sed 's/^/metrics /'

apt-get -q install -y --no-install-recommends /new.deb >/dev/null 2>&1
echo "upgraded $(mountkeeper --version)"
kill -USR2 $daemon; wait $daemon || true
start
[ "$(pgrep -x rclone | head -n 1)" = "$rclone" ] && echo 'same rclone'
echo 'written here' >/mnt/mountkeeper/files/b.txt
mountkeeper wait --synced --timeout 60s >/dev/null
echo "written $(cat /srv/nas/files/b.txt)"
cmp $config /config-before && echo 'same configuration'
kill -TERM $daemon; wait $daemon && echo 'stopped'

apt-get -q install -y --no-install-recommends --allow-downgrades /old.deb >/dev/null 2>&1
echo "downgraded $(dpkg-query -W -f '\${Version}' mountkeeper)"
cmp $config /config-before && echo 'same configuration'

# In the write layer, as a file lies there that a daemon has not sent.
waits=/var/cache/mountkeeper/files/layer/upper/c.txt
echo 'not sent' >$waits
dpkg --purge mountkeeper >/purge.log 2>&1 || echo 'purge refused'
grep -cx "$waits" /purge.log | sed 's/^/named /'
[ "$(cat $waits)" = 'not sent' ] && echo 'file kept'
rm $waits
dpkg --purge mountkeeper >/dev/null 2>&1 && echo 'purged'
for path in /etc/mountkeeper /var/lib/mountkeeper /var/cache/mountkeeper /usr/lib/mountkeeper /mnt/mountkeeper; do
  [ ! -e $path ] || echo "left $path"
done
`;

describe('the Debian package as it is released', () => {
  let scratch: Scratch;
  let deb: string;
  before(
    async () => {
      scratch = await createScratch('package-test');
      deb = await buildDeb(scratch.path('packages'));
    },
    { timeout: 1_500_000 },
  );
  after(() => scratch.close());

  it('has no errors that lintian finds', async () => {
    const done = await run(
      'lintian',
      ['--allow-root', '--fail-on', 'error', '--tag-display-limit', '0', deb],
      { timeout: 1_500_000 },
    ).catch((error: { stdout: string }) => error);
    assert.deepEqual(
      done.stdout.split('\n').filter((line) => /^[EW]:/.test(line)),
      [],
    );
  });

  it('is installed, upgraded, downgraded and purged in a clean Debian, and keeps a share there', async () => {
    const root = scratch.path('debian');
    await cleanDebian(root);
    await copyFile(deb, `${root}/new.deb`);
    await copyFile(await asVersion(deb, '0.0.9', scratch.path('old')), `${root}/old.deb`);
    await copyFile(currentRclone() ?? '/usr/bin/rclone', `${root}/usr/local/bin/rclone`);
    const done = await inside(root, INSIDE).then(
      (stdout) => ({ stdout, stderr: '' }),
      (error: { stdout: string; stderr: string }) => error,
    );
    const daemonLog = await readFile(`${root}/daemon.log`, 'utf8').catch(() => '');
    assert.deepEqual(
      done.stdout.trim().split('\n'),
      [
        'version mountkeeper 0.0.9',
        'check 0',
        'mode 700 /etc/mountkeeper',
        'mode 600 /etc/mountkeeper/web-password',
        'mode 600 /etc/mountkeeper/mountkeeper.toml',
        'read from the NAS',
        'metrics 1',
        'upgraded mountkeeper 0.1.0',
        'same rclone',
        'written written here',
        'same configuration',
        'stopped',
        'downgraded 0.0.9',
        'same configuration',
        'purge refused',
        'named 1',
        'file kept',
        'purged',
      ],
      `${done.stderr}\n${daemonLog}`,
    );
  });
});
