/** Finds the subcommand: the core's own few, then what plugins contribute. */
import type { CliCommand, CliContext } from '../api.ts';
import { packageVersion } from '../parts.ts';
import { createClock } from '../system/clock.ts';
import type { Arguments } from './arguments.ts';
import { request } from './client.ts';
import { EXIT } from './exit-codes.ts';
import { openOffline } from './offline.ts';
import type { Offline } from './offline.ts';
import { createTerminal } from './terminal.ts';
import type { Terminal } from './terminal.ts';

const DEFAULT_CONFIG = '/etc/mountkeeper/mountkeeper.toml';

/** Subcommands of the core itself; plugins bring the others. */
export const OWN_COMMANDS: readonly Pick<CliCommand, 'name' | 'usage' | 'summary'>[] = [
  { name: 'run', usage: '', summary: 'Run the daemon in the foreground.' },
  { name: 'check', usage: '', summary: 'Check the configuration file; exit 78 and FILE:line:column for what is wrong.' },
  { name: 'doctor', usage: '', summary: 'Check this machine and say what to do.' },
  { name: 'plugin', usage: 'list | new NAME | check DIR', summary: 'List plugins, begin a new one, check one.' },
];

export async function runCommandLine(args: Arguments): Promise<number> {
  const clock = createClock();
  const terminal = createTerminal({ stdout: process.stdout, stderr: process.stderr, now: () => clock.monotonic() });
  const configFile = args.config ?? process.env.MOUNTKEEPER_CONFIG ?? DEFAULT_CONFIG;
  if (args.version) {
    terminal.print(`mountkeeper ${await packageVersion()}`);
    return EXIT.ok;
  }
  if (!args.help && args.command === 'run') return orSentence(terminal, async () => (await import('./daemon-command.ts')).runDaemon(args, configFile));
  if (!args.help && args.command === 'check') return orSentence(terminal, async () => (await import('./check-command.ts')).runCheck(args, configFile, terminal));
  const offline = await openOffline(configFile);
  try {
    return await runOther({ args, configFile, terminal, offline });
  } finally {
    await offline.close();
  }
}

export interface Invocation {
  readonly args: Arguments;
  readonly configFile: string;
  readonly terminal: Terminal;
  readonly offline: Offline;
}

interface Contributed extends CliCommand {
  readonly plugin: string;
  readonly isOn: boolean;
}

async function runOther(invocation: Invocation): Promise<number> {
  const { args, offline, terminal } = invocation;
  const contributed = offline.host.dryRun().flatMap(({ plugin, cli }) => cli.map((command): Contributed => ({ ...command, plugin, isOn: offline.isOn(plugin) })));
  if (args.help || args.command === undefined || args.command === 'help') {
    terminal.print(usage(contributed.filter((command) => command.isOn)));
    return args.command === undefined && !args.help ? EXIT.usage : EXIT.ok;
  }
  const context = contextOf(invocation);
  if (args.command === 'doctor') return orSentence(terminal, async () => (await import('./doctor-command.ts')).runDoctor(invocation));
  if (args.command === 'plugin') return orSentence(terminal, async () => (await import('./plugin-command.ts')).runPlugin(invocation, context));
  return runContributed(invocation, contributed.find((candidate) => candidate.name === args.command), context);
}

async function runContributed({ args, configFile, terminal }: Invocation, command: Contributed | undefined, context: CliContext): Promise<number> {
  if (!command) {
    terminal.printError(`mountkeeper: there is no command '${args.command ?? ''}'; see 'mountkeeper --help'`);
    return EXIT.usage;
  }
  if (command.isOn) return orSentence(terminal, () => command.run(context));
  terminal.printError(`mountkeeper: '${command.name}' belongs to the plugin '${command.plugin}', which is off; set plugins.${command.plugin}.enabled = true in ${configFile}`);
  return EXIT.failure;
}

async function orSentence(terminal: Terminal, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    terminal.printError(`mountkeeper: ${(error as Error).message}`);
    return EXIT.failure;
  }
}

function contextOf({ args, configFile, terminal, offline }: Invocation): CliContext {
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort(new Error('interrupted')));
  return {
    ...terminal,
    args: args.rest,
    json: args.json,
    clock: offline.clock,
    signal: interrupt.signal,
    request: (method, path, body) => request(
      { configFile, isConfigNamed: args.config !== undefined, url: args.url, env: process.env, secrets: offline.secrets, signal: interrupt.signal },
      { method, path, ...(body === undefined ? {} : { body }) },
    ),
  };
}

function usage(contributed: readonly CliCommand[]): string {
  const commands = [...OWN_COMMANDS, ...contributed].toSorted((one, other) => one.name.localeCompare(other.name));
  const heads = commands.map((command) => `${command.name} ${command.usage}`.trim());
  const width = Math.max(...heads.map((head) => head.length));
  return [
    'Usage: mountkeeper COMMAND [--config FILE] [--url URL] [--json]',
    '',
    ...commands.map((command, index) => `  ${(heads[index] ?? '').padEnd(width)}  ${command.summary}`),
    '',
    `The configuration is ${DEFAULT_CONFIG} unless --config or MOUNTKEEPER_CONFIG names another.`,
    'Exit codes: 0 done, 1 failed, 64 wrong usage, 75 time ran out, 78 configuration not valid.',
  ].join('\n');
}
