/** `mountkeeper hash-password` as it is run: a hash comes out, and never the password. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { matchesHash, parseHash } from '../../../plugins/auth/password-hash.ts';
import { MAIN } from '../../support/daemon/daemon.ts';

const PASSWORD = 'Grüße-4412 词';

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(input: string, ...args: string[]): Promise<Said> {
  const child = spawn(process.execPath, [MAIN, 'hash-password', ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 30_000,
  });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece: Buffer) => {
    said.stdout += piece.toString();
  });
  child.stderr.on('data', (piece: Buffer) => {
    said.stderr += piece.toString();
  });
  child.stdin.on('error', () => undefined).end(input);
  await once(child, 'close');
  return { code: child.exitCode, ...said };
}

async function isHashOfPassword(text: string): Promise<boolean> {
  const hash = parseHash(text);
  return hash !== undefined && matchesHash(PASSWORD, hash);
}

describe('mountkeeper hash-password', () => {
  it('prints one line, the hash of the first line that it read, and nothing else', async () => {
    const { code, stdout, stderr } = await run(`${PASSWORD}\nanother line\n`);
    assert.deepEqual([code, stderr], [0, '']);
    const [line = '', ...rest] = stdout.split('\n');
    assert.deepEqual(rest, ['']);
    assert.ok(await isHashOfPassword(line), stdout);
  });

  it('gives machines the hash alone', async () => {
    const { code, stdout, stderr } = await run(`${PASSWORD}\n`, '--json');
    assert.deepEqual([code, stderr], [0, '']);
    const answer = JSON.parse(stdout) as { hash: string };
    assert.deepEqual(Object.keys(answer), ['hash']);
    assert.ok(await isHashOfPassword(answer.hash), stdout);
  });

  it('takes none as an argument, and does not repeat it', async () => {
    const { code, stdout, stderr } = await run('', PASSWORD);
    assert.deepEqual([code, stdout], [64, '']);
    assert.ok(!stderr.includes(PASSWORD), stderr);
    assert.match((await run('\n')).stderr, /No password was given/);
  });
});
