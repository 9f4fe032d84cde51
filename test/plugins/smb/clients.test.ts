/** Who is connected over SMB, as smbstatus and ss say, and the end of exactly one of them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { createClock } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import { clientsOf, disconnectClient } from '../../../plugins/smb/clients.ts';
import { smbPaths } from '../../../plugins/smb/paths.ts';

const login = (pid: number, session: string, username: string, port: number) => ({
  session_id: session,
  server_id: { pid: String(pid), task_id: '0' },
  username,
  remote_machine: '192.0.2.5',
  hostname: `ipv4:192.0.2.5:${port}`,
});
const tcon = (session: string, service: string, at: string) => ({
  session_id: session,
  service,
  connected_at: at,
});

interface Said {
  readonly logins?: string | readonly ReturnType<typeof login>[];
  readonly tcons?: readonly ReturnType<typeof tcon>[];
  readonly code?: number;
  readonly stderr?: string;
  readonly control?: (args: readonly string[]) => void;
}

/** Tools of a server that says so. */
function toolsFor({ logins = [], tcons = [], code = 0, stderr = '', control }: Said) {
  const byKey = (all: readonly object[]) => Object.fromEntries(all.map((one, index) => [String(index), one]));
  const run = async ({ command, args }: { command: string; args: readonly string[] }) => {
    const answer = (stdout: string) => ({ code, stdout, stderr, signal: null });
    if (command === 'smbcontrol') control?.(args.slice(3));
    if (command === 'ss')
      return answer('0 0 192.0.2.1:445 192.0.2.5:5001 ino:1 <-> bytes_acked:1000 bytes_received:200');
    if (args.includes('-S')) return answer(JSON.stringify({ tcons: byKey(tcons) }));
    return answer(typeof logins === 'string' ? logins : JSON.stringify({ sessions: byKey(logins) }));
  };
  return {
    processes: { run } as unknown as Processes,
    paths: smbPaths('/var/lib/mountkeeper'),
    env: {},
    clock: createClock(),
    port: 445,
    shares: new Set(['docs', 'photos']),
  };
}

describe('clients of SMB', () => {
  it('have their user, shares, time and bytes, and guests no name', async () => {
    const found = await clientsOf(
      toolsFor({
        logins: [login(11, '7', 'anna', 5001), login(12, '8', 'nobody', 5002)],
        tcons: [
          tcon('7', 'photos', '2026-01-01T10:00:00.500000+00:00'),
          tcon('7', 'docs', '2026-01-01T09:00:00+00:00'),
          tcon('7', 'IPC$', '2026-01-01T08:00:00+00:00'),
        ],
      }),
    );
    const address = '192.0.2.5';
    assert.deepEqual(found, [
      {
        id: '11.7',
        user: 'anna',
        address,
        shares: ['docs', 'photos'],
        since: Date.UTC(2026, 0, 1, 9),
        lastAt: null,
        bytesToClient: 1_000,
        bytesFromClient: 200,
      },
      {
        id: '12.8',
        user: null,
        address,
        shares: [],
        since: null,
        lastAt: null,
        bytesToClient: null,
        bytesFromClient: null,
      },
    ]);
  });

  it('are not made up when the server does not say who they are', async () => {
    await assert.rejects(
      clientsOf(toolsFor({ code: 1, stderr: 'no such file\n' })),
      /ended with 1: no such file/,
    );
    const old = { code: 1, stderr: '--json: unknown option' };
    await assert.rejects(clientsOf(toolsFor(old)), /older than 4\.17, or built without JSON/);
    for (const logins of ['', 'x', '{}', '{"sessions":{"1":{"session_id":"../1"}}}'])
      await assert.rejects(clientsOf(toolsFor({ logins })), /cannot be read/);
  });

  it('end when they are told to, and nobody else does, nor who has the same process number by now', async (t) => {
    const smbd = spawn('sleep', ['60'], { stdio: 'ignore' });
    t.after(() => void smbd.kill('SIGKILL'));
    await once(smbd, 'spawn');
    const pid = smbd.pid as number;
    const orders: string[] = [];
    const control = (args: readonly string[]): void => {
      orders.push(args.join(' '));
      smbd.kill();
    };
    const tools = toolsFor({ logins: [login(pid, '7', 'anna', 5001)], control });
    assert.deepEqual(await Promise.all([`${pid}.8`, '1.7', 'x'].map((id) => disconnectClient(id, tools))), [
      false,
      false,
      false,
    ]);
    assert.deepEqual(orders, []);
    assert.equal(await disconnectClient(`${pid}.7`, tools), true);
    assert.deepEqual(orders, [`${pid} shutdown`]);
    assert.equal(smbd.signalCode ?? (await once(smbd, 'exit'))[1], 'SIGTERM');
  });

  it('that do not end are not said to have ended', async () => {
    const tools = toolsFor({ logins: [login(process.pid, '7', 'anna', 5001)] });
    let now = 0;
    const clock = { ...tools.clock, monotonic: () => now, sleep: async (ms: number) => void (now += ms) };
    await assert.rejects(
      disconnectClient(`${process.pid}.7`, { ...tools, clock } as typeof tools),
      /has not ended within 3 s/,
    );
  });
});
