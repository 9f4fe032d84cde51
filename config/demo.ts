/**
 * `npm start`: a NAS of its own on loopback, the real daemon beside it, the main job done before your eyes,
 * and then time to try things. Everything lies in one temporary folder and is gone at the end, however the
 * end comes.
 */
import { statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatBytes } from 'mountkeeper';
import {
  DemoFault,
  MAIN,
  copyIntoMount,
  fetchShares,
  readThroughMount,
  runCli,
  startDaemon,
  startNas,
} from './demo/parts.ts';
import type { DemoDaemon, DemoNas } from './demo/parts.ts';
import { DemoRoom, MAY_WRITE } from './demo/room.ts';
import { describeServers } from './demo/servers.ts';

const DEFAULT_MINUTES = 10;
const PICTURE = '2024 春节/全家福 family.png';

const say = (text = ''): void => void process.stdout.write(`${text}\n`);

function quoted(text: string): string {
  return /^[\w./:=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

async function showMainJob(room: DemoRoom, nas: DemoNas, daemon: DemoDaemon): Promise<void> {
  const photos = join(daemon.mountRoot, '照片 Photos');
  const cold = await readThroughMount(join(photos, PICTURE));
  const warm = await readThroughMount(join(photos, PICTURE));
  say(`Read ${PICTURE} (${formatBytes(cold.bytes)})`);
  say(`  cold, over the network:       ${cold.ms.toFixed(1)} ms`);
  say(`  warm, from the local cache:   ${warm.ms.toFixed(1)} ms`);
  if (MAY_WRITE) await showWriting(room, nas, daemon);
  else
    say('The shares are for reading: only root may mount what is written to. Run this as root to see that.');
}

async function showWriting(room: DemoRoom, nas: DemoNas, daemon: DemoDaemon): Promise<void> {
  const copy = join(daemon.mountRoot, '照片 Photos', '新 new picture.png');
  const start = performance.now();
  await copyIntoMount(join(nas.folder, 'Photos 照片', PICTURE), copy);
  say(
    `Wrote ${relative(daemon.mountRoot, copy)} in ${(performance.now() - start).toFixed(0)} ms; ` +
      'it goes up in the background…',
  );
  await runCli(daemon, 'wait', '--synced', '--timeout', '60s');
  const onNas = join(nas.folder, 'Photos 照片', '新 new picture.png');
  say(
    `  …and is on the NAS: ${relative(room.folder, onNas)}, ${formatBytes(statSync(onNas).size)}, ` +
      `${((performance.now() - start) / 1000).toFixed(1)} s after the write began`,
  );
}

async function showWhatToTry(
  room: DemoRoom,
  { nas, daemon }: { readonly nas: DemoNas; readonly daemon: DemoDaemon },
  minutes: number,
): Promise<void> {
  const cli = `node ${quoted(relative(process.cwd(), MAIN) || MAIN)}`;
  const config = `--config ${quoted(daemon.configFile)}`;
  say();
  say('Mounted:');
  for (const share of await fetchShares(daemon))
    say(`  ${join(daemon.mountRoot, share.name)}  (${share.health})`);
  const { where, toTry } = await describeServers(daemon.url, daemon.servers, room.folder);
  say('Shown to other machines (here: to this one alone):');
  for (const line of where) say(`  ${line}`);
  say(`URL:   ${daemon.url}   API: ${daemon.url}/api/status`);
  say(`NAS:   ${nas.folder}   (what the NAS has on its disk)`);
  say();
  say('To try, in another terminal:');
  say(`  ls -l ${quoted(join(daemon.mountRoot, '照片 Photos'))}`);
  say(`  curl -s ${daemon.url}/api/status`);
  say(`  ${cli} status ${config}`);
  say(`  ${cli} bwlimit 1M 0 ${config}`);
  say(`  ${cli} reconnect 'Team Files' ${config}`);
  for (const line of toTry) say(`  ${line}`);
  say(`  ${cli} doctor ${config}`);
  say(`  ${cli} logs -f ${config}`);
  say();
  say(
    `Ctrl-C ends it and removes everything; by itself it ends in ${minutes} minutes (MOUNTKEEPER_DEMO_MINUTES).`,
  );
}

function minutesToRun(): number {
  const minutes = Number(process.env['MOUNTKEEPER_DEMO_MINUTES'] ?? DEFAULT_MINUTES);
  return Number.isFinite(minutes) && minutes > 0 ? minutes : DEFAULT_MINUTES;
}

/** Aborts on Ctrl-C, SIGTERM or SIGHUP, and when whoever started the demo is gone. */
function watchForTheEnd(): AbortSignal {
  const end = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end.abort());
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && end.abort(), 1_000).unref();
  return end.signal;
}

async function story(room: DemoRoom, minutes: number, end: AbortSignal): Promise<void> {
  say('Starting a demo NAS (rclone serving a sample folder over SFTP on loopback) and Mountkeeper…');
  const nas = await startNas(room);
  const daemon = await startDaemon(room, nas);
  say(`The page: ${daemon.url}/   (shows what follows as it happens)`);
  say();
  await showMainJob(room, nas, daemon);
  await showWhatToTry(room, { nas, daemon }, minutes);
  await sleep(minutes * 60_000, undefined, { signal: end }).catch(() => undefined);
}

async function main(): Promise<number> {
  const end = watchForTheEnd();
  const room = await DemoRoom.open();
  let failure: unknown;
  const ended = new Promise<void>((resolve) =>
    end.addEventListener('abort', () => resolve(), { once: true }),
  );
  await Promise.race([story(room, minutesToRun(), end).catch((error: unknown) => (failure = error)), ended]);
  say();
  say('Ending: what is not on the NAS yet goes up, then everything is taken down…');
  await room.close();
  if (failure === undefined || end.aborted) {
    say('Done; nothing is left behind.');
    return 0;
  }
  process.stderr.write(`The demo could not go on: ${(failure as Error).message}\n`);
  if (!(failure instanceof DemoFault))
    process.stderr.write('This is a defect of the demo; please report it.\n');
  return 1;
}

// A story that was interrupted may have something under way still: its outcome no longer matters.
process.exit(
  await main().catch((error: unknown) => {
    process.stderr.write(`The demo could not clean up: ${(error as Error).message}\n`);
    return 1;
  }),
);
