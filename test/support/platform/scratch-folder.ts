/**
 * A folder of its own for one test file, and the certainty that nothing outlives it: whatever still runs from
 * it or is still mounted in it is ended by process id, found by the folder's unique path, before the folder
 * goes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mountsBelow, detachAll } from './mounted-file-systems.ts';
import { processesNaming, signalProcess } from './processes.ts';
import { until } from './wait.ts';

export interface Scratch {
  readonly root: string;
  path(...parts: string[]): string;
  /** Runs at the end, last in first out, also when the test failed. */
  defer(release: () => unknown): void;
  close(): Promise<void>;
}

/**
 * Makes a folder below the temporary folder. `close` ends what `defer` was given, last first, sweeps, and
 * removes it.
 */
export async function createScratch(name: string): Promise<Scratch> {
  const root = await realpath(await mkdtemp(join(tmpdir(), `mk-${name}-`)));
  const releases: (() => unknown)[] = [];
  return {
    root,
    path: (...parts) => join(root, ...parts),
    defer: (release) => void releases.push(release),
    close: async () => {
      const failures: unknown[] = [];
      await keepLogs(root, name);
      for (const release of releases.reverse()) {
        await Promise.resolve()
          .then(release)
          .catch((error: unknown) => failures.push(error));
      }
      await sweep(root);
      if (failures.length > 0) throw new AggregateError(failures, `clean up ${root}`);
    },
  };
}

/** Copies every log to the folder that MOUNTKEEPER_TEST_LOGS names, for who wants to see what happened. */
async function keepLogs(root: string, name: string): Promise<void> {
  const folder = process.env['MOUNTKEEPER_TEST_LOGS'];
  if (folder === undefined || folder === '') return;
  // Two levels deep: a recursive walk would enter the mounts.
  for (const room of ['.', ...(await readdir(root))]) {
    const logs = (await readdir(join(root, room)).catch(() => [])).filter((file) => file.endsWith('.log'));
    for (const log of logs) {
      await mkdir(join(folder, name, room), { recursive: true });
      await copyFile(join(root, room, log), join(folder, name, room, log));
    }
  }
}

/**
 * Ends every process that names the folder, takes down every mount below it, removes it. Returns what was
 * found.
 */
export async function sweep(root: string): Promise<string[]> {
  const found: string[] = [];
  await until(
    `nothing runs from ${root}`,
    async () => {
      const processes = await processesNaming(root);
      found.push(...processes.map((process) => `process ${process.pid}: ${process.command.slice(0, 120)}`));
      processes.forEach((process) => signalProcess(process, 'SIGKILL'));
      const mounts = await mountsBelow(root);
      found.push(...mounts.map((mount) => `mount ${mount.mountPoint}`));
      await detachAll(mounts);
      return processes.length === 0 && mounts.length === 0;
    },
    { timeoutMs: 30_000, everyMs: 100 },
  );
  try {
    await rm(root, { recursive: true, force: true });
  } catch {
    // Mount points without their mount are locked against writes, and stay so when their daemon was killed.
    await once(spawn('chattr', ['-R', '-f', '-i', root], { stdio: 'ignore' }), 'exit').catch(() => undefined);
    await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
  return [...new Set(found)];
}
