/**
 * A page that is open for a day: a proxy gives Chromium the real page, and in place of its stream the updates of a
 * day, as fast as the page takes them. Each is one that the daemon has really sent.
 */
import { createServer, request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { Browser, CDPSession } from 'playwright-core';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';
import type { Figure } from './figures.ts';

/** Of a day at the default of `supervisor.poll_interval`. */
const CYCLES = 43_200;
/** Shares of which a cycle updates one card each, in turn: a day with all of 200 would take hours. */
const RECORDED_MS = 9_000;

/** The daemon's own events, without the first picture of the page. */
async function recorded(origin: string, path: string): Promise<readonly string[]> {
  const { body } = await fetch(origin + path, { signal: AbortSignal.timeout(RECORDED_MS) });
  let text = '';
  const decoder = new TextDecoder();
  try {
    for await (const piece of body ?? []) text += decoder.decode(piece as Uint8Array, { stream: true });
  } catch {
    // The time is over.
  }
  return text
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => /^event: share-/m.test(event));
}

async function replay(events: readonly string[], response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let cycle = 0; cycle < CYCLES && !response.destroyed; cycle += 1) {
    const event = events[cycle % events.length] ?? '';
    if (!response.write(`${event}\n\n`)) await once(response, 'drain');
  }
  response.write('event: sentence\ndata: <p id="day-is-over">over</p>\n\n');
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

export async function grownInADay(browser: Browser, origin: string, scratch: Scratch): Promise<Figure> {
  const page = await browser.newPage();
  let events: readonly string[] = [];
  let isDay = false;
  const server = createServer((asked, response) => {
    if (!asked.url?.startsWith('/dashboard/events')) return pass(origin, asked, response);
    if (isDay) return void replay(events, response);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': quiet\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  scratch.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/shares/share%20number%200`;
  const text = await (await fetch(address)).text();
  events = await recorded(origin, /sse-connect="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '');
  if (events.length === 0) throw new Error('the daemon sent no update of the share');
  const session = await page.context().newCDPSession(page);
  const open = async (): Promise<void> => {
    await page.goto(address);
    await page.waitForTimeout(2_000);
  };
  await open();
  const before = await sizeOf(session);
  isDay = true;
  const began = performance.now();
  await open();
  await until('the day is over', async () => (await page.locator('#day-is-over').count()) === 1, {
    timeoutMs: 400_000,
  });
  const seconds = Math.round((performance.now() - began) / 1_000);
  const after = await sizeOf(session);
  await page.close();
  return {
    what: 'a page of the dashboard that is open for a day',
    ours: `${after.heapMb.toFixed(1)} MB, ${after.nodes} nodes`,
    beside: `${before.heapMb.toFixed(1)} MB, ${before.nodes} nodes (just opened)`,
    ratio: `${(after.heapMb / before.heapMb).toFixed(2)}×`,
    aim: '≤ 1.20×',
    note:
      `Memory of its scripts and nodes of the page after a collection. ${CYCLES} updates of the page of a ` +
      `share that the daemon has really sent, in turn, in ${seconds} s instead of a day.`,
  };
}
