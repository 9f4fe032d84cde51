/** Later polls of `/api/logs` on a file of 1 GB beside `tail`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { mkdir } from 'node:fs/promises';
import { Daemon } from '../support/daemon/daemon.ts';
import { residentBytes } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { timed } from '../support/platform/wait.ts';
import { median, ms, times } from './figures.ts';
import type { Figure } from './figures.ts';

const FILE_BYTES = 1_000_000_000;
const POLLS = 200;

interface Page {
  readonly total_lines: number;
  readonly entries: readonly string[];
}

async function writeLog(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const block = Buffer.from(
    Array.from(
      { length: 5_000 },
      (_, index) =>
        `2024-11-20T10:00:00.000Z INFO  cycle done share=photos number=${index} ` +
        `${'lorem ipsum dolor sit amet '.repeat(4)}\n`,
    ).join(''),
  );
  const handle = await open(file, 'w');
  for (let written = 0; written < FILE_BYTES; written += block.length) await handle.write(block);
  await handle.close();
}

async function tail(file: string): Promise<void> {
  const child = spawn('tail', ['-n', '200', file], { stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.resume();
  await once(child, 'close');
}

export async function benchLogs(scratch: Scratch): Promise<Figure[]> {
  const daemon = await Daemon.create(scratch, {
    name: 'logs',
    connections: [{ name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: '1' } }],
    shares: [],
  });
  await writeLog(daemon.logFile);
  await daemon.start(30_000);
  let total = 0;
  const poll = async (from: number): Promise<void> => {
    total = (await daemon.get<Page>(`/api/logs?from_line=${from}`)).body.total_lines;
  };
  const firstMs = await timed(poll(0));
  const spans = { ours: [] as number[], tail: [] as number[] };
  const memory: number[] = [];
  for (let index = 0; index < POLLS; index += 1) {
    await appendFile(daemon.logFile, 'one more line\n');
    spans.ours.push(await timed(poll(total)));
    if (index % 4 === 0) spans.tail.push(await timed(tail(daemon.logFile)));
    memory.push(residentBytes(daemon.pid));
  }
  await daemon.stop();
  const growth = (median(memory.slice(-20)) - median(memory.slice(20, 40))) / 1e6;
  return [
    {
      what: 'later poll of /api/logs on a 1 GB file',
      ours: ms(median(spans.ours)),
      beside: `${ms(median(spans.tail))} (tail -n 200)`,
      ratio: times(median(spans.ours) / median(spans.tail)),
      aim: '≤ 2 ms',
      note:
        `Median of ${POLLS} polls, a line appended before each; ` +
        'the time includes the HTTP client. ' +
        `The first poll, which reads the file once, took ${ms(firstMs)}. ` +
        `Memory went ${growth >= 0 ? '+' : ''}${growth.toFixed(1)} MB from the 30th to the ` +
        `last poll (resident ${Math.round(median(memory.slice(-20)) / 1e6)} MB).`,
    },
  ];
}
