/**
 * What an accepted document may differ in from the one of the file, said without the allowlist that
 * accepted it.
 */
import assert from 'node:assert/strict';
import type { Config, ConnectionConfig } from '../../../core/contract/config.ts';

const NETWORK = new Set(['sftp', 'smb', 'webdav', 'ftp', 'http', 's3', 'b2', 'swift']);
const ABOUT_THIS_MACHINE =
  /command|(^|_)ssh$|_file$|profile|socket|proxy|^remote$|upstreams|kerberos|agent|set_env|metadata_mapper/;

/**
 * Throws an AssertionError unless the new configuration differs from the one of the file only in what may
 * come over HTTP.
 */
export function assertAllowedDifferences(next: Config, file: Config): void {
  const frozen = (one: Config): unknown => [
    one.mount.root,
    one.mount.rclone,
    one.mount.rclone_mirror,
    one.mount.rclone_proxy,
    one.cache.dir,
    one.supervisor.state_dir,
    one.log.file,
    one.plugins.dirs,
    one.plugins.install_from_page,
  ];
  assert.deepEqual(frozen(next), frozen(file));
  assert.ok(
    isOff(next, 'absent') || isSame(next.plugins['absent'], file.plugins['absent']),
    'a plugin that is not there was changed',
  );
  assert.ok(isOff(next, 'stranger'), 'a plugin that is not there was switched on');
  const known = references(file, '');
  for (const one of references(next, '')) assert.ok(known.includes(one), `a reference of its own: ${one}`);
  for (const connection of next.connections)
    assertSameOrOpen(
      connection,
      file.connections.find(({ name }) => name === connection.name),
    );
  for (const share of next.shares) assertSharePlaced(share, next, file);
  const { webhook_url: url, webhook_secret: secret } = next.notifications;
  if (typeof secret === 'object' && url !== '') assert.equal(url, file.notifications.webhook_url);
}

function assertSharePlaced(share: Config['shares'][number], next: Config, file: Config): void {
  const was = file.shares.find(({ name }) => name === share.name);
  assert.ok(
    share.mount_point === was?.mount_point || share.mount_point.startsWith(`${file.mount.root}/`),
    share.mount_point,
  );
  assert.ok(share.exec !== true, 'programs can be run');
  const type = next.connections.find(({ name }) => name === share.connection)?.type ?? '';
  if (NETWORK.has(type)) return;
  const now = [share.connection, share.remote_path, share.read_only || !was?.read_only];
  assert.deepEqual(now, [was?.connection, was?.remote_path, true]);
}

function assertSameOrOpen(connection: ConnectionConfig, was: ConnectionConfig | undefined): void {
  if (isSame(connection, was)) return;
  assert.ok(NETWORK.has(connection.type), `a ${connection.type} over HTTP`);
  const ofMachine = Object.entries(connection.options).filter(
    ([name, value]) => ABOUT_THIS_MACHINE.test(name) || typeof value === 'object',
  );
  for (const [name, value] of ofMachine) assert.deepEqual(value, was?.options[name], `${name} over HTTP`);
  if (ofMachine.length > 0) {
    for (const name of ['host', 'port', 'url', 'user', 'endpoint'])
      assert.deepEqual(connection.options[name], was?.options[name], `${name} of a bound connection`);
  }
  // The lines of a key are written as one.
  const lines = Object.entries(connection.options).filter(([name]) => name !== 'key_pem');
  for (const [, value] of lines) if (typeof value === 'string') assert.doesNotMatch(value, /[\0\r\n]/);
}

function isOff(config: Config, plugin: string): boolean {
  return (config.plugins[plugin] as { enabled?: unknown } | undefined)?.enabled !== true;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Every reference with the names of the tables on the way to it. */
function references(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const keys = Object.keys(value);
  if (keys.length === 1 && ['file', 'env', 'credential'].includes(keys[0] ?? ''))
    return [`${path} ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([key, one]) =>
    references(one, `${path}.${Array.isArray(value) ? (nameOf(one) ?? key) : key}`),
  );
}

function nameOf(value: unknown): string | undefined {
  const name = (value as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? name : undefined;
}
