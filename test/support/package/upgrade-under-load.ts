/** A share on a machine with systemd, clients that use it without a pause, and packages installed meanwhile. */
import assert from 'node:assert/strict';
import type { SystemdMachine } from './systemd-machine.ts';
import { until } from '../platform/wait.ts';

/** Starts the NAS; to be run again after each start of the machine. */
export const NAS =
  'systemd-run --quiet --unit=nas rclone serve sftp /srv/nas --addr 127.0.0.1:2022 --user nas --pass secret';
/** A client of the share; its commands follow. */
export const SMB = "smbclient //127.0.0.1/files --user 'anna%for the LAN' --command";

/**
 * Clients of the share, each until it is told that it is enough. A call that fails, or brings something else than the
 * NAS has, is noted.
 */
const CLIENTS = {
  read: `
until [ -e /load/enough ]; do
  { ${SMB} 'get big.bin /load/copy' && cmp /load/copy /srv/nas/files/big.bin; } >/load/said 2>&1 ||
    cat /load/said >>/load/failed
  echo read >>/load/reads
done`,
  write: `
number=0
until [ -e /load/enough ]; do
  number=$((number + 1))
  echo $number >/mnt/mountkeeper/files/w-$number || echo "write $number" >>/load/failed
  sleep 0.05
done
echo $number >/load/writes`,
  nfs: `
until [ -e /load/enough ]; do
  { nfs-cat 'nfs://127.0.0.1/files/small.bin?version=4' >/load/nfs-copy &&
    cmp /load/nfs-copy /srv/nas/files/small.bin; } >/load/nfs-said 2>&1 || cat /load/nfs-said >>/load/failed
  echo read >>/load/nfs-reads
done`,
} as const;

export type LoadClient = keyof typeof CLIENTS;

/** Sets the installed program up with a NAS and one share over SMB, by `mountkeeper init` and its flags. */
export async function setUpShare(machine: SystemdMachine, bigMib: number): Promise<void> {
  await machine.must(
    `mkdir -p /srv/nas/files; cd /srv/nas/files; head -c ${String(bigMib)}M /dev/urandom >big.bin; ` +
      `head -c ${String(Math.ceil(bigMib / 16))}M big.bin >small.bin; cd /; ${NAS}`,
  );
  await machine.must('printf secret >/root/nas-password; printf "for the LAN" >/root/lan-password');
  await machine.must(
    'mountkeeper init --address sftp://127.0.0.1:2022 --user nas --password-file /root/nas-password ' +
      '--folders files --lan-user anna --lan-password-file /root/lan-password --yes',
  );
}

/** Waits until this version runs and says that the share is healthy. */
export function isUp(machine: SystemdMachine, version: string): Promise<unknown> {
  return until(
    `version ${version} is up and the share healthy`,
    async () =>
      (await machine.must('mountkeeper --version')).endsWith(` ${version}`) &&
      (await machine.run("mountkeeper status | grep -q '^files *healthy'")).code === 0,
    { timeoutMs: 60_000, everyMs: 200 },
  );
}

const rclones = (machine: SystemdMachine): Promise<string> => machine.must('pgrep -f "[r]clone mount"');
const daemon = (machine: SystemdMachine): Promise<string> =>
  machine.must('systemctl show --property=MainPID --value mountkeeper');

/**
 * Installs a package while clients read and write: another daemon runs afterwards, no client's call has failed, every
 * written file is on the NAS, and no rclone was replaced. Returns what dpkg said.
 */
export async function installUnderLoad(
  machine: SystemdMachine,
  deb: string,
  clients: readonly LoadClient[] = ['read', 'write'],
): Promise<string> {
  const [formerRclones, formerDaemon] = [await rclones(machine), await daemon(machine)];
  const begin = clients.map(
    (name) =>
      `cat >/load/${name} <<'END'\n${CLIENTS[name]}\nEND\nsystemd-run --quiet --unit=load-${name} sh /load/${name}\n`,
  );
  await machine.must(`rm -rf /load; mkdir /load\n${begin.join('')}`);
  await until('a client reads', async () => (await machine.run('test -s /load/copy')).code === 0, {
    timeoutMs: 60_000,
  });
  const said = await machine.must(`dpkg --install ${deb} 2>&1`, 300_000);
  const units = clients.map((name) => `load-${name}`).join(' ');
  await machine.must(`touch /load/enough; while systemctl is-active --quiet ${units}; do sleep 0.1; done`);
  assert.equal((await machine.run('cat /load/failed')).stdout, '');
  assert.equal(await rclones(machine), formerRclones);
  assert.notEqual(await daemon(machine), formerDaemon, 'another daemon runs');
  const writes = Number(await machine.must('cat /load/writes'));
  assert.ok(writes > 20, `${String(writes)} writes`);
  await machine.must('mountkeeper wait --synced --timeout 60s');
  assert.equal(await machine.must('ls /srv/nas/files | grep -c "^w-[0-9]*$"'), String(writes));
  // A listing that was read during an upload may have its temporary name.
  await machine.must('rm -f /mnt/mountkeeper/files/w-*');
  return said;
}
