/** `npm start`, from its first line to the empty folder it leaves. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import { mountsBelow } from '../support/mounts.ts';
import { processesNaming } from '../support/processes.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until, within } from '../support/until.ts';

const DEMO = fileURLToPath(new URL('../../config/demo.js', import.meta.url));

describe('the demo', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('demo');
  });
  after(() => scratch.close());

  const start = (env: Record<string, string>): { child: ReturnType<typeof spawn>; output: () => string } => {
    const child = spawn(process.execPath, [DEMO], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], HOME: scratch.root, TMPDIR: scratch.root, ...env } });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => (text += piece.toString()));
    return { child, output: () => text };
  };
  const nothingLeft = async (): Promise<void> => {
    assert.deepEqual(await readdir(scratch.root), []);
    assert.deepEqual(await mountsBelow(scratch.root), []);
    assert.deepEqual(await processesNaming(scratch.root), []);
  };

  it('does the main job, shows where and what to try, and ends cleanly on Ctrl-C', async () => {
    const { child, output } = start({});
    const ended = once(child, 'exit');
    await until('it is up', () => output().includes('Ctrl-C ends it') || child.exitCode !== null, { timeoutMs: 60_000 });
    const text = output();
    for (const part of [/cold, over the network: +[\d.]+ ms/, /warm, from the local cache: +[\d.]+ ms/, /is on the NAS/, /照片 Photos\s+\(healthy\)/, /http:\/\/127\.0\.0\.1:\d+/, /10 minutes/]) assert.match(text, part);
    const url = /URL: +(\S+)/.exec(text)?.[1] ?? '';
    assert.equal((await fetch(`${url}/api/status`)).status, 200);
    child.kill('SIGINT');
    const [code] = (await within('its end', 40_000, ended)) as [number | null];
    assert.equal(code, 0, output());
    assert.doesNotMatch(output(), /at .*\.js:\d/);
    await nothingLeft();
  });

  it('ends by itself after its time', async () => {
    const { child, output } = start({ MOUNTKEEPER_DEMO_MINUTES: '0.02' });
    const [code] = (await within('its end', 60_000, once(child, 'exit'))) as [number | null];
    assert.equal(code, 0, output());
    await nothingLeft();
  });

  it('says in a sentence what is wrong and leaves nothing when it cannot start', async () => {
    const { child, output } = start({ PATH: '/nonexistent' });
    const [code] = (await within('its end', 60_000, once(child, 'exit'))) as [number | null];
    assert.equal(code, 1, output());
    assert.match(output(), /could not go on: .*rclone/);
    assert.doesNotMatch(output(), /at .*\.js:\d/);
    await nothingLeft();
  });
});
