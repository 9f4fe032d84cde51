/** Finds the subcommand: the core's own, then those of plugins. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CliCommand, CliContext } from '../contract/cli.ts';
import type { Config } from '../contract/config.ts';
import { createClock } from '../platform/clock.ts';
import { packageVersion } from '../platform/package.ts';
import { runShortCommand } from '../platform/processes/short-command.ts';
import { configFileOf, UsageFault, optionNames } from './arguments.ts';
import type { Arguments } from './arguments.ts';
import { suggestion } from '../config/schema/did-you-mean.ts';
import { NoDaemon, request } from './client.ts';
import { EXIT } from './exit-codes.ts';
import { interruption } from './interrupt.ts';
import type { Invocation } from './invocation.ts';
import type { Offline } from './offline.ts';
import { ConfigFault, createOfflineServices } from './offline-services.ts';
import { createTerminal } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { OWN_COMMANDS, overview, page } from './usage.ts';

export async function runCommandLine(args: Arguments): Promise<number> {
  const clock = createClock();
  const terminal = createTerminal({
    stdout: process.stdout,
    stderr: process.stderr,
    now: () => clock.monotonic(),
  });
  const configFile = configFileOf(args);
  if (args.version) {
    terminal.print(`mountkeeper ${await packageVersion()}`);
    return EXIT.ok;
  }
  const stray = args.help ? undefined : strayWord(args);
  if (stray !== undefined) {
    terminal.printError(`mountkeeper: ${stray}`);
    return EXIT.usage;
  }
  if (!args.help && args.command === 'run')
    return orSentence(terminal, async () =>
      (await import('./daemon-command.ts')).runDaemon(args, configFile),
    );
  if (!args.help && args.command === 'check')
    return orSentence(terminal, async () =>
      (await import('./check-command.ts')).runCheck(args, configFile, terminal),
    );
  const offline = await (await import('./offline.ts')).openInTree(configFile);
  try {
    return await runOther({ args, configFile, terminal, offline });
  } finally {
    await offline.close();
  }
}

interface Contributed extends CliCommand {
  readonly plugin: string;
  readonly isOn: boolean;
}

async function runOther(invocation: Invocation): Promise<number> {
  const { args, offline, terminal } = invocation;
  const comesWithUs =
    args.command === 'plugin' || contributedTo(offline).some(({ name }) => name === args.command);
  if (!comesWithUs) await offline.discoverAll();
  const contributed = contributedTo(offline);
  if (args.help || args.command === undefined || args.command === 'help')
    return showHelp(args, contributed, terminal);
  const context = contextOf(invocation);
  if (args.command === 'doctor')
    return orSentence(terminal, async () => (await import('./doctor-command.ts')).runDoctor(invocation));
  if (args.command === 'support')
    return orSentence(terminal, async () =>
      (await import('./support/support-command.ts')).runSupport(invocation, context),
    );
  if (args.command === 'plugin')
    return orSentence(terminal, async () =>
      (await import('./plugin/plugin-command.ts')).runPlugin(invocation, context).catch(refuseForeignAnswer),
    );
  const command = contributed.find((candidate) => candidate.name === args.command);
  return command
    ? runContributed(invocation, command, context)
    : refuseUnknown(args.command, contributed, terminal);
}

function contributedTo(offline: Offline): readonly Contributed[] {
  return offline.host
    .dryRun()
    .flatMap(({ plugin, cli }) => cli.map((command) => ({ ...command, plugin, isOn: offline.isOn(plugin) })));
}

/** A word that the core's subcommands without arguments do not take, or an option before any subcommand. */
function strayWord({ command, rest, safeMode }: Arguments): string | undefined {
  if (safeMode && command !== 'run') return "--safe-mode is an option of 'run'";
  const [word] = rest;
  if (word === undefined) return undefined;
  if (command === undefined && word.startsWith('-'))
    return `there is no option '${word}' (see 'mountkeeper --help')${suggestion(word, optionNames())}`;
  if (command === undefined || !WITHOUT_ARGUMENTS.has(command)) return undefined;
  return word.startsWith('-')
    ? `'${command}' has no option '${word}'${suggestion(word, optionNames())}`
    : `'${command}' takes no arguments, and '${word}' is one; a configuration is named by --config FILE`;
}

const WITHOUT_ARGUMENTS = new Set(
  OWN_COMMANDS.filter(({ usage }) => usage === '' || usage.startsWith('[--')).map(({ name }) => name),
);

function showHelp(args: Arguments, contributed: readonly Contributed[], terminal: Terminal): number {
  const width = Math.min(terminal.columns, MOST_HELP_COLUMNS);
  const subject = args.command === 'help' ? args.rest[0] : args.command;
  if (subject === undefined) {
    terminal.print(
      overview(
        contributed.filter((command) => command.isOn),
        width,
      ),
    );
    return args.command === undefined && !args.help ? EXIT.usage : EXIT.ok;
  }
  const own = OWN_COMMANDS.find(({ name }) => name === subject);
  const other = contributed.find(({ name }) => name === subject);
  const command = own ?? other;
  if (!command) return refuseUnknown(subject, contributed, terminal);
  terminal.print(page(command, width));
  if (other && !other.isOn) terminal.print(`\nIt belongs to the plugin '${other.plugin}', which is off.`);
  return EXIT.ok;
}

const MOST_HELP_COLUMNS = 100;

function refuseUnknown(name: string, contributed: readonly Contributed[], terminal: Terminal): number {
  const known = [...OWN_COMMANDS, ...contributed.filter((command) => command.isOn)].map(
    (command) => command.name,
  );
  terminal.printError(
    `mountkeeper: there is no command '${name}' (see 'mountkeeper --help')${suggestion(name, known)}`,
  );
  return EXIT.usage;
}

async function runContributed(
  { configFile, terminal }: Invocation,
  command: Contributed,
  context: CliContext,
): Promise<number> {
  if (command.isOn) return orSentence(terminal, () => command.run(context).catch(refuseForeignAnswer));
  terminal.printError(
    `mountkeeper: '${command.name}' belongs to the plugin '${command.plugin}', which is off; ` +
      `set plugins.${command.plugin}.enabled = true in ${configFile}`,
  );
  return EXIT.failure;
}

/**
 * Subcommands parse only the daemon's answers, so a JSON error means that something else answered, or a
 * broken daemon.
 */
function refuseForeignAnswer(error: unknown): never {
  if (!(error instanceof SyntaxError)) throw error;
  throw new Error(
    'what answered is no mountkeeper daemon, or not one of this version; name the daemon with --url or --config',
    { cause: error },
  );
}

async function orSentence(terminal: Terminal, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    terminal.printError(`mountkeeper: ${(error as Error).message}`);
    if (error instanceof ConfigFault) return EXIT.config;
    return error instanceof UsageFault ? EXIT.usage : EXIT.failure;
  }
}

function contextOf({ args, configFile, terminal, offline }: Invocation): CliContext {
  const signal = interruption(offline.clock);
  const ask: CliContext['request'] = (method, path, body, { isPrivate } = {}) =>
    request(
      {
        configFile,
        isConfigNamed: args.config !== undefined,
        url: args.url,
        isPrivate,
        env: process.env,
        secrets: offline.secrets,
        signal,
      },
      { method, path, ...(body === undefined ? {} : { body }) },
    );
  return {
    ...terminal,
    args: args.rest,
    json: args.json,
    clock: offline.clock,
    signal,
    request: ask,
    configFile: resolve(configFile),
    hasDaemon: async () => {
      const isNamed = (args.url ?? process.env.MOUNTKEEPER_URL) !== undefined;
      if (!isNamed && !existsSync(configFile)) return false;
      try {
        return (await ask('GET', '/healthz')).status < 500;
      } catch (error) {
        if (error instanceof NoDaemon && !isNamed) return false;
        throw error;
      }
    },
    offline: createOfflineServices(offline, resolve(configFile)),
    config: () => readConfig(configFile, offline),
    run: (spec) => runShortCommand(spec, offline.clock),
  };
}

/** A command may come before there is a configuration. */
async function readConfig(file: string, offline: Offline): Promise<Config> {
  await offline.discoverAll();
  const check = existsSync(file)
    ? await offline.config.loadFile()
    : await offline.config.check('connections = []\n', 'file');
  if (check.ok) return check.loaded.config;
  const { problemLines } = await import('./check-command.ts');
  throw new Error(`the configuration is not valid: ${problemLines(file, check).join('; ')}`);
}
