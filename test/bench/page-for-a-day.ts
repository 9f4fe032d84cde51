/**
 * A page that is open for a day: a proxy gives Chromium the real page, and in place of its stream the updates of a
 * day, as fast as the page takes them. Each is one that the daemon has really sent. After each third of the day
 * the stream breaks off, the page is measured, and connects again.
 */
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { Browser, CDPSession } from 'playwright-core';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import { times } from './figures.ts';
import type { Figure } from './figures.ts';

/** Of a day at the default of `supervisor.poll_interval`. */
const CYCLES = 43_200;
const THIRDS = 3;
const RECORDED_MS = 9_000;
/** For a third, on a machine with other work, too. */
const LONGEST_MS = 600_000;

/** The daemon's own updates of a cycle, without the first picture of the page. */
async function recorded(origin: string, path: string): Promise<readonly string[]> {
  const { body } = await fetch(origin + path, { signal: AbortSignal.timeout(RECORDED_MS) });
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const piece of body ?? []) text += decoder.decode(piece as Uint8Array, { stream: true });
  } catch {
    // The time is over.
  }
  const events = text.split('\n\n').slice(0, -1);
  // A cycle begins with the sentence, which counts the waiting files of all shares.
  const cycles: string[] = [];
  // With its heartbeat: a page that hears none for 10 s takes its stream for dead.
  const beat = events.find((one) => /^event: beat$/m.test(one)) ?? '';
  for (const event of events.filter((one) => /^event: (?:sentence|values|share-|panel-)/m.test(one)))
    if (/event: sentence|"id":"sentence"/.test(event)) cycles.push(event);
    else if (cycles.length > 0) cycles.push(`${cycles.pop() ?? ''}\n\n${event}`);
  return cycles.slice(0, -1).map((cycle) => `${beat}\n\n${cycle}`);
}

/** A third of the day, and the end of the stream. */
async function replay(cycles: readonly string[], third: number, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('retry: 1000\n\n');
  for (let cycle = 0; cycle < CYCLES / THIRDS && !response.destroyed; cycle += 1)
    if (!response.write(`${cycles[cycle % cycles.length] ?? ''}\n\n`)) await once(response, 'drain');
  response.end(`event: sentence\ndata: <p id="third-${third}">over</p>\n\n`);
}

function pass(origin: string, asked: IncomingMessage, response: ServerResponse): void {
  const { host } = new URL(origin);
  const headers = { ...asked.headers, host };
  const there = request(`${origin}${asked.url ?? '/'}`, { method: asked.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  asked.pipe(there);
}

interface Size {
  readonly heapMb: number;
  readonly nodes: number;
}

async function sizeOf(session: CDPSession): Promise<Size> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number };
  const { nodes } = (await session.send('Memory.getDOMCounters')) as { nodes: number };
  return { heapMb: usedSize / 1024 / 1024, nodes };
}

/** Serves the real page with the stream of a day; `next` lets another third of it begin. */
async function serve(origin: string, scratch: Scratch) {
  let cycles: readonly string[] = [];
  let [begun, allowed] = [0, 0];
  const server = createServer((asked, response) => {
    if (!asked.url?.startsWith('/dashboard/events')) return pass(origin, asked, response);
    if (begun < allowed) return void replay(cycles, (begun += 1), response);
    // The browser asks again in a second.
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 1000\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  scratch.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/shares/share%20number%200`;
  const text = await (await fetch(address)).text();
  cycles = await recorded(origin, /sse-connect="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '');
  if (cycles.length === 0) throw new Error('the daemon sent no update of the share');
  return { address, next: (): number => (allowed += 1) };
}

export async function grownInADay(browser: Browser, origin: string, scratch: Scratch): Promise<Figure> {
  const page = await browser.newPage();
  const { address, next } = await serve(origin, scratch);
  const session = await page.context().newCDPSession(page);
  await page.goto(address);
  await page.waitForTimeout(2_000);
  const before = await sizeOf(session);
  const began = performance.now();
  const after: Size[] = [];
  while (after.length < THIRDS) {
    const third = next();
    await until(
      `third ${third} of the day is over`,
      async () => (await page.locator(`#third-${third}`).count()) === 1,
      { timeoutMs: LONGEST_MS },
    );
    after.push(await sizeOf(session));
  }
  const seconds = Math.round((performance.now() - began) / 1_000);
  await page.close();
  const [first, last] = [after[0] ?? before, after.at(-1) ?? before];
  const shown = ({ heapMb, nodes }: Size): string => `${heapMb.toFixed(1)} MB, ${nodes} nodes`;
  return {
    what: 'a page of the dashboard that is open for a day',
    ours: shown(last),
    beside: `${shown(first)} (after a third of it), ${shown(before)} (just opened)`,
    ratio: times(last.heapMb / first.heapMb),
    aim: '≤ 1.20×',
    note:
      `Memory of its scripts and nodes of the page after a collection. ${CYCLES} cycles' updates of the page of a ` +
      `share that the daemon has really sent, in turn, in ${seconds} s instead of a day; the stream broke off and ` +
      'came back after each third.',
  };
}
