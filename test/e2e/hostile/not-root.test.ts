/**
 * The daemon as a plain user, in namespaces of its own: what it does there ends with them, whatever happens.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { configText } from '../../support/config/config-text.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { unlessRoot } from '../../runner/skips.ts';

const PROJECT = fileURLToPath(new URL('../../../../', import.meta.url));
/** The user `nobody`, which every system has. */
const UID = 65_534;
const LIMIT_MS = 60_000;
const ROOM = '/mnt/room';

/**
 * A user without rights can enter neither the project's folder nor the scratch folder everywhere, nor open
 * /dev/fuse: so all three are shown at places of the namespace's own.
 */
const NAMESPACE = `
set -e
mount -t tmpfs -o mode=755,dev none /mnt
mkdir /mnt/project ${ROOM}
touch /mnt/node
mknod /mnt/fuse c 10 229
chmod 666 /mnt/fuse
mount --bind "$PROJECT" /mnt/project
mount --bind "$SCRATCH/room" ${ROOM}
mount --bind "$NODE" /mnt/node
mount --bind /mnt/fuse /dev/fuse
as_user() { setpriv --reuid=${UID} --regid=${UID} --clear-groups env -C ${ROOM} HOME=${ROOM} PATH="$PATH" "$@"; }
keeper() { as_user /mnt/node /mnt/project/dist/core/main.js "$@" --config ${ROOM}/mountkeeper.toml; }
below() { mkdir -p /mnt/below; mount --bind ${ROOM}/mnt /mnt/below; stat -c %a /mnt/below/photos; umount /mnt/below; }
serving() { pgrep -f 'rclone[^ ]* mount nas' || true; }
keeper run > ${ROOM}/daemon.out 2>&1 &
until as_user test -e mnt/photos/a.bin; do sleep 0.2; done
as_user sh -c 'echo "sum=$(sha256sum < mnt/photos/a.bin)"'
as_user sh -c 'printf edited 2>/dev/null > mnt/photos/b.txt || echo write=refused'
keeper status | grep -o 'writing to a share needs a daemon.*' | tr '\\n' ' ' | sed 's/^/written=/'; echo
echo "below=$(below)"
keeper doctor || true
former=$(serving)
kill -9 "$former"
# It may answer once more while it dies.
until [ -n "$(serving)" ] && [ "$(serving)" != "$former" ]; do sleep 0.1; done
until as_user cat mnt/photos/b.txt > /dev/null 2>&1; do sleep 0.2; done
echo healed=yes
# Locked once it is mounted and answers, so a moment after it can be read.
until [ "$(below)" = 555 ]; do sleep 0.1; done
echo "below=$(below)"
kill -TERM "$(pgrep -f '^/mnt/node .* run ')"
wait %1 && echo ended=0
`;

/** Who is not root runs every other file as that user anyway. */
describe('a daemon that does not run as root', { timeout: LIMIT_MS + 10_000, skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  const said = new Map<string, string[]>();
  let output = '';

  before(async () => {
    scratch = await createScratch('not-root');
    nas = await Nas.create(scratch, {
      files: { 'a.bin': 2_000_000, 'b.txt': 10 },
    });
    const room = scratch.path('room');
    await mkdir(`${room}/mnt`, { recursive: true });
    await writeFile(
      `${room}/mountkeeper.toml`,
      configText({
        sections: {
          web: { port: await freePort() },
          mount: { root: `${ROOM}/mnt`, write_back: '1s' },
          cache: { dir: `${ROOM}/cache`, min_free_space: '100M' },
          supervisor: {
            state_dir: `${ROOM}/state`,
            poll_interval: '1s',
            stop_timeout: '30s',
          },
          log: { file: `${ROOM}/daemon.log` },
        },
        connections: [nas.connection('nas')],
        shares: [
          { name: 'photos', connection: 'nas', read_only: true },
          { name: 'written', connection: 'nas' },
        ],
      }),
    );
    for (const path of [room, `${room}/mnt`, `${room}/mountkeeper.toml`]) await chown(path, UID, UID);
    output = await inNamespace(scratch);
    for (const [, key = '', value = ''] of output.matchAll(/^(\w+)=(.*)$/gm))
      said.set(key, [...(said.get(key) ?? []), value]);
  });
  after(() => scratch.close());

  it('mounts, and reads what is on the NAS byte for byte', async () => {
    assert.deepEqual(said.get('sum'), [`${await nas.checksum('a.bin')}  -`], output);
  });

  it('has the folder below the mount locked, also once it was mounted anew', () => {
    assert.deepEqual(said.get('below'), ['555', '555'], output);
  });

  it('heals after a kill -9 of rclone', () => {
    assert.deepEqual(said.get('healed'), ['yes'], output);
  });

  it('takes no writes, says what to do about that, and ends with 0', async () => {
    assert.equal((await readFile(`${nas.dir}/b.txt`)).length, 10);
    assert.deepEqual([said.get('write'), said.get('ended')], [['refused'], ['0']], output);
    assert.match(said.get('written')?.[0] ?? '', /as root/, output);
  });

  it('is told by doctor that servers of other users may not enter', () => {
    assert.match(output, /user_allow_other/);
    assert.match(output, /shares can only be read/);
  });
});

async function inNamespace(scratch: Scratch): Promise<string> {
  const log = scratch.path('namespace.log');
  const child = spawn(
    'unshare',
    ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', NAMESPACE],
    {
      env: {
        PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
        PROJECT,
        SCRATCH: scratch.root,
        NODE: process.execPath,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL',
    },
  );
  const file = createWriteStream(log);
  child.stdout.pipe(file, { end: false });
  child.stderr.pipe(file, { end: false });
  await once(child, 'close');
  file.end();
  await once(file, 'close');
  return readFile(log, 'utf8');
}
