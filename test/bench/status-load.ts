/** `/api/status` of the real daemon beside raw node:http that serves the same bytes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../support/daemon/daemon.ts';
import { freePort } from '../support/platform/free-port.ts';
import { cpuMs } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { median, times } from './figures.ts';
import type { Figure } from './figures.ts';

const ROUNDS = 5;
const SPAN_MS = 2_000;
const built = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

interface Sample {
  readonly perSecond: number;
  readonly cpuUs: number;
}

async function hammer(port: number, path: string, serverPid: number): Promise<Sample> {
  const cpuBefore = cpuMs(serverPid);
  const child = spawn(process.execPath, [built('./hammer.js'), String(port), path, String(SPAN_MS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
  await once(child, 'close');
  const { answers } = JSON.parse(text) as { answers: number };
  return { perSecond: answers / (SPAN_MS / 1000), cpuUs: ((cpuMs(serverPid) - cpuBefore) * 1000) / answers };
}

async function compare(scratch: Scratch, shares: number): Promise<Figure> {
  const daemon = await Daemon.create(scratch, {
    name: `status-${shares}`,
    connections: [{ name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: '1' } }],
    shares: Array.from({ length: shares }, (_, index) => ({
      name: `share number ${index}`,
      connection: 'nas',
    })),
    sections: { 'plugins.mount': { enabled: false }, log: { level: 'error' } },
  });
  await daemon.start(30_000);
  await until('all shares are listed', async () => (await daemon.status()).shares.length === shares, {
    timeoutMs: 20_000,
  });
  await sleep(2_000);
  const body = (await daemon.get('/api/status')).text;
  const file = scratch.path(`status-${shares}.json`);
  await writeFile(file, body);
  const port = await freePort();
  const raw = spawn(process.execPath, [built('./raw-server.js'), file, String(port)], { stdio: 'inherit' });
  scratch.defer(() => raw.kill('SIGKILL'));
  await until('the raw server answers', async () => (await fetch(`http://127.0.0.1:${port}/`)).ok, {
    timeoutMs: 10_000,
  });
  const samples: { ours: Sample; raw: Sample }[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const pair = {
      ours: await hammer(daemon.port, '/api/status', daemon.pid),
      raw: await hammer(port, '/', raw.pid ?? 0),
    };
    if (round > 0) samples.push(pair);
  }
  raw.kill('SIGKILL');
  await daemon.stop();
  const ratio = median(samples.map((pair) => pair.ours.perSecond / pair.raw.perSecond));
  const describe = (which: 'ours' | 'raw'): string =>
    `${Math.round(median(samples.map((pair) => pair[which].perSecond)))}/s, ` +
    `${Math.round(median(samples.map((pair) => pair[which].cpuUs)))} µs CPU each`;
  return {
    what: `/api/status with ${shares} share${shares === 1 ? '' : 's'} (${(body.length / 1024).toFixed(1)} KiB)`,
    ours: describe('ours'),
    beside: `${describe('raw')} (raw node:http, same bytes)`,
    ratio: times(ratio),
    aim: '≥ 0.60×',
    note:
      'Answers per second of the real daemon, 16 kept-alive connections, ' +
      `median of ${ROUNDS} interleaved rounds of ${SPAN_MS / 1000} s. ` +
      'The shares are configured and in the status record but not mounted: ' +
      'the mount plugin is switched off for this figure.',
  };
}

export async function benchStatus(scratch: Scratch): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const shares of [1, 100, 1_000]) figures.push(await compare(scratch, shares));
  return figures;
}
