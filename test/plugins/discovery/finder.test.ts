import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Answer } from 'dns-packet';
import { pino } from 'pino';
import { createClock } from '../../../core/platform/clock.ts';
import { createNasFinder } from '../../../plugins/discovery/finder.ts';
import { nasIn } from '../../../plugins/discovery/nas-records.ts';

const RESPONDER = fileURLToPath(new URL('../../support/exports/nas-responder.js', import.meta.url));

const server = (
  name: string,
  type: string,
  at: Partial<Record<'host' | 'ip' | 'txt', string>> & { port: number },
) =>
  [
    { name: type, type: 'PTR', data: `${name}.${type}` },
    { name: `${name}.${type}`, type: 'SRV', data: { port: at.port, target: at.host ?? 'NAS.local' } },
    ...(at.txt === undefined ? [] : [{ name: `${name}.${type}`, type: 'TXT', data: [Buffer.from(at.txt)] }]),
    { name: (at.host ?? 'NAS.local').toLowerCase(), type: 'A', data: at.ip ?? '192.168.1.5' },
  ] as unknown as Answer[];
const here = (address: string): boolean => address.startsWith('192.168.1.');

describe('looking for a NAS', () => {
  it('reads each kind of server, with its port and path', () => {
    const records = [
      ...server('Disk station', '_smb._tcp.local', { port: 445 }),
      ...server('ssh', '_sftp-ssh._tcp.local', { port: 2222 }),
      ...server('dav', '_webdavs._tcp.local', { port: 5006, txt: 'path=/home%20dir/' }),
      ...server('plain', '_webdav._tcp.local', { port: 80 }),
      ...server('printer', '_ipp._tcp.local', { port: 631 }),
    ];
    assert.deepEqual(nasIn(records, here), [
      { kind: 'smb', name: 'Disk station', address: '192.168.1.5' },
      { kind: 'sftp', name: 'ssh', address: '192.168.1.5:2222' },
      { kind: 'webdav', name: 'dav', address: 'https://192.168.1.5:5006/home%20dir/' },
      { kind: 'webdav', name: 'plain', address: 'http://192.168.1.5/' },
    ]);
  });

  it('takes names as text alone', () => {
    const hostile = '\u202egpj.\u001b[31m<script>\u0000\n$(reboot)';
    const [nas] = nasIn(server(hostile, '_smb._tcp.local', { port: 445 }), here);
    assert.equal(nas?.name, 'gpj.[31m<script>$(reboot)');
    const [long] = nasIn(server('x'.repeat(5_000), '_smb._tcp.local', { port: 445 }), here);
    assert.equal(long?.name.length, 63);
    assert.deepEqual(nasIn(server('\u200b', '_smb._tcp.local', { port: 445 }), here), []);
  });

  it('follows no answer elsewhere', () => {
    for (const at of [
      { port: 445, ip: '8.8.8.8' },
      { port: 445, ip: '169.254.169.254' },
      { port: 445, ip: 'fe80::1' },
      { port: 445, ip: '192.168.1.5@evil' },
      { port: 0 },
      { port: 70_000 },
      { port: 1.5 },
    ])
      assert.deepEqual(nasIn(server('n', '_smb._tcp.local', at), here), [], JSON.stringify(at));
    for (const txt of [
      'path=@evil.example/',
      'path=/a?b',
      'path=/../x',
      'path=//e#',
      `path=/${'a'.repeat(300)}`,
    ])
      assert.equal(
        nasIn(server('n', '_webdav._tcp.local', { port: 80, txt }), here)[0]?.address,
        'http://192.168.1.5/',
        txt,
      );
  });

  it('finds a real responder, and hears at most 32 of a crowd', async () => {
    const child = fork(RESPONDER, ['127.0.0.1', '60'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    try {
      await once(child, 'message');
      const finder = createNasFinder({
        clock: createClock(),
        log: pino({ level: 'silent' }),
        networks: () => [{ address: '127.0.0.1', cidr: '127.0.0.0/8' }],
        own: () => new Set(),
      });
      const found = await finder.find();
      const ours = found.filter(({ name }) => name.startsWith('disk '));
      assert.ok(ours.length > 0 && found.length <= 32, String(found.length));
      for (const { kind, address } of ours)
        assert.deepEqual([kind, /^127\.0\.0\.1:4\d{3}$/.test(address)], ['smb', true]);
      const over = AbortSignal.abort();
      assert.deepEqual(await finder.find(over), []);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
