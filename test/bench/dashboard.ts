/**
 * The dashboard with 200 shares that change at every poll: what an update costs the browser and the daemon, what 50
 * open pages cost others, and how a page grows that is open for a day. Mounts are played; the daemon, its HTTP, the
 * page and Chromium are real.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { openBrowser } from '../support/dashboard/chromium.ts';
import { Daemon } from '../support/daemon/daemon.ts';
import { place } from '../support/plugins/strangers.ts';
import { threadsCpuMs } from '../support/platform/processes.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { sleep, until } from '../support/platform/wait.ts';
import { median, ms, times } from './figures.ts';
import type { Figure } from './figures.ts';
import { grownInADay } from './page-for-a-day.ts';
import { PLAYING_MOUNTER } from './playing-mounter.ts';

const SHARES = 200;
const PAGES = 50;
/** The default of `supervisor.poll_interval`. */
const CYCLE_MS = 2_000;
const SPAN_MS = 20_000;
const OPENINGS = 5;
/** In one span of ten cycles a large collection of garbage makes up to a third of the figure. */
const UPDATE_SPANS = 3;
/** One of a hundred meets the cycle itself: with a few hundred it would be chance which one is the hundredth. */
const ASKS = 1_600;
const PLAYED = 'Mounts are played by a plugin that gives other figures at each poll; all else is real.';

async function start(scratch: Scratch): Promise<Daemon> {
  await place(scratch, 'playing-mounter', PLAYING_MOUNTER);
  const daemon = await Daemon.create(scratch, {
    name: 'dashboard',
    connections: [{ name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: '1' } }],
    shares: Array.from({ length: SHARES }, (_, index) => ({
      name: `share number ${index}`,
      connection: 'nas',
    })),
    sections: {
      'plugins.mount': { enabled: false },
      'plugins.playing-mounter': { enabled: true, isolation: 'none' },
      plugins: { dirs: [scratch.path('plugins')] },
      supervisor: { state_dir: scratch.path('state'), poll_interval: `${CYCLE_MS}ms`, stop_timeout: '5s' },
      log: { level: 'error' },
    },
  });
  await daemon.start(60_000);
  await until(
    'all shares are healthy',
    async () => (await daemon.status()).shares.filter(({ health }) => health === 'healthy').length === SHARES,
    { timeoutMs: 60_000 },
  );
  return daemon;
}

/**
 * A reader of the overview's stream without a browser. What comes is dropped as it is: read as a stream of `fetch()`
 * by this process, fifty of them would keep it from its own questions, which would look like the daemon's delay.
 */
async function read(daemon: Daemon): Promise<Socket> {
  const page = await (await fetch(`http://127.0.0.1:${daemon.port}/`)).text();
  const events = /sse-connect="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const socket = connect(daemon.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`GET ${events} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
  await once(socket, 'data');
  return socket.resume();
}

interface Load {
  readonly cpuPerCycleMs: number;
  readonly periodMs: number;
  readonly p99Ms: number;
}

/** What the daemon uses, how often it polls, and how long `/api/status` takes, with so many pages open. */
async function loadWith(daemon: Daemon, pages: number): Promise<Load> {
  const readers: Socket[] = [];
  for (let page = 0; page < pages; page += 1) readers.push(await read(daemon));
  await sleep(CYCLE_MS * 2);
  await daemon.get('/ext/playing-mounter/polls');
  const cpuBefore = threadsCpuMs(daemon.pid);
  await sleep(SPAN_MS);
  const cpuPerCycleMs = ((threadsCpuMs(daemon.pid) - cpuBefore) / SPAN_MS) * CYCLE_MS;
  const polls = (await daemon.get<number[]>('/ext/playing-mounter/polls')).body;
  const periods = polls.slice(1).map((at, index) => at - (polls[index] ?? at));
  const asked: number[] = [];
  for (let ask = 0; ask < ASKS; ask += 1) {
    const from = performance.now();
    await daemon.get('/api/status');
    asked.push(performance.now() - from);
    await sleep(20);
  }
  for (const reader of readers) reader.destroy();
  await sleep(500);
  const p99Ms = asked.sort((a, b) => a - b)[Math.floor(ASKS * 0.99)] ?? Number.NaN;
  return { cpuPerCycleMs, periodMs: median(periods), p99Ms };
}

async function metric(session: CDPSession, name: string): Promise<number> {
  const { metrics } = (await session.send('Performance.getMetrics')) as {
    metrics: readonly { readonly name: string; readonly value: number }[];
  };
  return metrics.find((one) => one.name === name)?.value ?? Number.NaN;
}

/**
 * Processor time of the page's main thread for one cycle's update: scripts, layout and painting together. Not the
 * span, which on a machine with other work has that in it, too.
 */
async function updateMs(browser: Browser, origin: string): Promise<number> {
  const page = await browser.newPage();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(`${origin}/`);
  await sleep(CYCLE_MS * 2);
  const perCycle: number[] = [];
  for (let span = 0; span < UPDATE_SPANS; span += 1) {
    const before = await metric(session, 'TaskDuration');
    await sleep(SPAN_MS);
    perCycle.push((((await metric(session, 'TaskDuration')) - before) * 1_000 * CYCLE_MS) / SPAN_MS);
  }
  await page.close();
  return median(perCycle);
}

interface Opening {
  readonly paintMs: number;
  readonly bytes: number;
}

/** Everything that the first visit loads, compressed as it came. */
async function opening(browser: Browser, origin: string): Promise<Opening> {
  const context = await browser.newContext();
  const page: Page = await context.newPage();
  await page.goto(`${origin}/`);
  await sleep(1_000);
  const found = await page.evaluate<Opening>(`(() => {
    const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    return {
      paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
      bytes: entries.filter((one) => !one.name.includes('/events')).reduce((sum, one) => sum + one.encodedBodySize, 0),
    };
  })()`);
  await context.close();
  return found;
}

async function benchPage(browser: Browser, origin: string): Promise<Figure[]> {
  const openings: Opening[] = [];
  for (let round = 0; round < OPENINGS; round += 1) openings.push(await opening(browser, origin));
  const update = await updateMs(browser, origin);
  return [
    {
      what: `dashboard with ${SHARES} shares: a cycle's update in the browser`,
      ours: `${ms(update)} CPU`,
      beside: `${ms(CYCLE_MS)} (a cycle)`,
      ratio: times(update / CYCLE_MS),
      aim: '< 30 ms',
      note:
        'Processor time of the main thread of Chromium without a graphics card, all cards changed; mean of ' +
        `${SPAN_MS / CYCLE_MS} cycles, median of ${UPDATE_SPANS} such means. ${PLAYED}`,
    },
    {
      what: `dashboard with ${SHARES} shares: first paint`,
      ours: ms(median(openings.map(({ paintMs }) => paintMs))),
      beside: '-',
      ratio: '-',
      aim: '< 300 ms',
      note: `First contentful paint of a first visit over loopback, median of ${OPENINGS}. ${PLAYED}`,
    },
    {
      what: `dashboard with ${SHARES} shares: the whole page, compressed`,
      ours: `${(median(openings.map(({ bytes }) => bytes)) / 1024).toFixed(0)} KiB`,
      beside: '-',
      ratio: '-',
      aim: '< 150 KB',
      note: 'The page with all that it loads at a first visit, as it comes over the line.',
    },
  ];
}

async function benchReaders(daemon: Daemon): Promise<Figure[]> {
  const [none, one, many] = [
    await loadWith(daemon, 0),
    await loadWith(daemon, 1),
    await loadWith(daemon, PAGES),
  ];
  const perPage = (many.cpuPerCycleMs - none.cpuPerCycleMs) / PAGES;
  return [
    {
      what: `dashboard with ${SHARES} shares: a cycle's update in the daemon, per open page`,
      ours: `${ms(perPage)} CPU`,
      beside: `${ms(one.cpuPerCycleMs - none.cpuPerCycleMs)} (the first page), ${ms(none.cpuPerCycleMs)} (no page)`,
      ratio: '-',
      aim: '< 5 ms',
      note:
        `Processor time of all threads over ${SPAN_MS / 1_000} s, ${PAGES} pages of one language. Pages of one ` +
        'language and host name are drawn once for all of them, so the first one pays for it. ' +
        PLAYED,
    },
    {
      what: `poll period with ${PAGES} open pages`,
      ours: ms(many.periodMs),
      beside: `${ms(none.periodMs)} (no page)`,
      ratio: times(many.periodMs / none.periodMs),
      aim: '≤ 1.20×',
      note: `Median time between two polls of one of ${SHARES} shares. ${PLAYED}`,
    },
    {
      what: `/api/status p99 with ${PAGES} open pages`,
      ours: ms(many.p99Ms),
      beside: `${ms(none.p99Ms)} (no page)`,
      ratio: times(many.p99Ms / none.p99Ms),
      aim: '≤ 1.20×',
      note: `${ASKS} requests one after the other, ${SHARES} shares. ${PLAYED}`,
    },
  ];
}

/** What was measured before something failed is shown all the same. */
export async function benchDashboard(scratch: Scratch): Promise<Figure[]> {
  const daemon = await start(scratch);
  const browser = await openBrowser(scratch);
  const origin = `http://127.0.0.1:${daemon.port}`;
  const figures: Figure[] = [];
  try {
    figures.push(...(await benchPage(browser, origin)));
    figures.push(...(await benchReaders(daemon)));
    figures.push(await grownInADay(browser, origin, scratch));
  } catch (error) {
    console.table(figures.map(({ what, ours, beside, aim }) => ({ what, ours, beside, aim })));
    throw error;
  }
  await daemon.stop();
  return figures;
}
