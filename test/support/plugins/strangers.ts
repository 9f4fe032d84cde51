/** Strangers' plugins for end-to-end tests: written into a folder, and looked at from outside. */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import type { Daemon } from '../daemon/daemon.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';

/** What the daemon says of a plugin. */
export interface PluginJson {
  readonly name: string;
  readonly state: string;
  readonly reason?: string | null;
  readonly effects: readonly string[];
}

/** The entrance of a plugin that has `body` as its `register(ctx)`; `config` goes into its definition. */
export function source(name: string, body: string, config = ''): string {
  return `import { definePlugin, h, Joi } from 'mountkeeper';
import { spawn } from 'node:child_process';
export default definePlugin({ name: '${name}', version: '1.0.0', apiVersion: 1,
  description: 'A stranger.', ${config}
  register(ctx) { void [spawn, Joi, h]; ${body} } });
`;
}

export interface Manifest extends Readonly<Record<string, unknown>> {
  /** Left out: those that are the default. */
  readonly permissions?: readonly string[] | undefined;
}

/** Lays a plugin into the scratch folder's `plugins`; keys of its package.json as they are, but `permissions`. */
export async function place(
  scratch: Scratch,
  name: string,
  text: string,
  { permissions, ...more }: Manifest = {},
): Promise<void> {
  await mkdir(scratch.path('plugins', name), { recursive: true });
  const manifest = { type: 'module', ...more, ...(permissions && { mountkeeper: { permissions } }) };
  await writeFile(scratch.path('plugins', name, 'package.json'), JSON.stringify(manifest));
  await writeFile(scratch.path('plugins', name, 'index.js'), text);
}

/** Undefined where the daemon knows no such plugin. */
export async function plugin(daemon: Daemon, name: string): Promise<PluginJson | undefined> {
  return (await daemon.get<PluginJson[]>('/api/plugins')).body.find((one) => one.name === name);
}

/** Waits until a plugin is in a state. Rejects at the deadline. */
export function inState(
  daemon: Daemon,
  name: string,
  state: string,
  timeoutMs = 60_000,
): Promise<PluginJson> {
  return until(
    `${name} is ${state}`,
    async () => {
      const found = await plugin(daemon, name);
      return found?.state === state ? found : undefined;
    },
    { timeoutMs },
  );
}

/** Messages of all notices. */
export async function notices(daemon: Daemon): Promise<readonly string[]> {
  const { body } = await daemon.get<{ message: string }[]>('/api/notices');
  return body.map(({ message }) => message);
}

/** Process ids of the runners of a daemon: its children, or theirs where a runner has processes of its own. */
export async function runnersOf(pid: number): Promise<readonly number[]> {
  const found = await Promise.all(
    (await readdir('/proc')).map(async (name) => {
      if (!/^\d+$/.test(name)) return [];
      const text = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '');
      const command = await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => '');
      const parent = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
      return command.includes('runner-main') ? [{ pid: Number(name), parent, command }] : [];
    }),
  );
  const all = found.flat();
  const startedBy = (leader: number): typeof all =>
    all.filter(({ parent }) => parent === leader).flatMap((one) => [one, ...startedBy(one.pid)]);
  /** Beside it: the shell that ends what it leaves. Above it: what gave it processes of its own. */
  const isNode = ({ command }: { command: string }): boolean => command.startsWith(process.execPath);
  return all
    .filter(({ parent }) => parent === pid)
    .map((leader) => [leader, ...startedBy(leader.pid)].find(isNode) ?? leader)
    .map((runner) => runner.pid);
}
