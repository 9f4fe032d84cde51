/** A real SSH server on loopback for tests: keys and settings of its own, in a folder of the test's. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SSHD = '/usr/sbin/sshd';

/** `settings` are what the plugin needs to ask it. */
export async function startSshd(folder) {
  mkdirSync(folder, { recursive: true });
  const file = (name) => path.join(folder, name);
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)]);
  // Its child without rights lives there.
  if (process.getuid() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 });
  const port = await freePort();
  writeFileSync(file('authorized_keys'), readFileSync(file('user.pub')), { mode: 0o600 });
  writeFileSync(file('known_hosts'), `[127.0.0.1]:${port} ${readFileSync(file('host.pub'), 'utf8')}`);
  writeFileSync(
    file('sshd_config'),
    [
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${file('host')}`,
      `AuthorizedKeysFile ${file('authorized_keys')}`,
      'PidFile none',
      'AuthenticationMethods publickey',
      'PermitRootLogin prohibit-password',
      'UsePAM no',
      'StrictModes no',
    ].join('\n'),
  );
  const child = spawn(SSHD, ['-D', '-e', '-f', file('sshd_config')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (piece) => (said += piece));
  const ended = once(child, 'exit');
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${said}`);
    await sleep(20);
  }
  return {
    settings: {
      host: '127.0.0.1',
      port,
      user: userInfo().username,
      key: file('user'),
      known_hosts: file('known_hosts'),
    },
    close: async () => {
      child.kill();
      await ended;
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const tell = (isThere) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('data', () => tell(true));
    socket.once('error', () => tell(false));
  });
}
