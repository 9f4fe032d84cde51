/** `mountkeeper plugin`: for authors, and for those who install what others have written. */
import { pino } from 'pino';
import type { CliContext } from '../../contract/cli.ts';
import type { PluginInfo } from '../../contract/services.ts';
import { enabledIn, peekConfig } from '../../config/peek.ts';
import { checkPlugin, newPlugin, renderPluginTable } from './author.ts';
import type { PluginRow } from './author.ts';
import { discoverPlugins } from '../../plugins/discovery/discover.ts';
import { searchedFolders } from '../../plugins/discovery/installed.ts';
import { onUnlessSaid } from '../../plugins/discovery/found.ts';
import type { FoundPlugin } from '../../plugins/discovery/found.ts';
import { IN_TREE_PLUGINS } from '../../platform/package.ts';
import { NoDaemon } from '../client.ts';
import type { Invocation } from '../invocation.ts';
import { EXIT } from '../exit-codes.ts';
import { PLUGIN_USAGE } from '../usage.ts';
import { migratePlugin } from './migrate-command.ts';
import { agreementIn, isYes } from './install/consent.ts';
import { installPlugin, removePlugin, searchPlugins } from './install/install-command.ts';
import { updatePlugins } from './install/update-command.ts';

const IMPORT_MS = 10_000;

type Action = (words: readonly string[], invocation: Invocation, context: CliContext) => Promise<number>;

interface Usage {
  /** How many words, from and to. */
  readonly words: readonly [number, number];
  readonly option?: string;
  /** `--yes`, or `--yes=SENTENCE`. */
  readonly mayAgree?: true;
  readonly run: Action;
}

const ACTIONS: Readonly<Record<string, Usage>> = {
  list: { words: [0, 0], run: (_, invocation, context) => listOf(invocation, context) },
  // Only the daemon knows what has broken off.
  enable: {
    words: [1, 1],
    run: ([name = ''], _, context) => post(`${urlOf(name)}/enable`, undefined, context),
  },
  'log-level': {
    words: [2, 2],
    run: ([name = '', level = ''], _, context) => post(`${urlOf(name)}/log-level`, { level }, context),
  },
  new: {
    words: [1, 1],
    option: '--ts',
    run: ([name = ''], { args }, context) =>
      newPlugin(name, context, args.rest.includes('--ts') ? 'ts' : 'js'),
  },
  migrate: {
    words: [1, 1],
    option: '--yes',
    run: ([name = ''], { args, configFile }, context) =>
      migratePlugin(name, { configFile, isAgreed: args.rest.includes('--yes') }, context),
  },
  check: {
    words: [1, 1],
    option: '--yes',
    run: ([folder = ''], { args }, context) => checkPlugin(folder, args.rest.includes('--yes'), context),
  },
  search: { words: [0, Infinity], run: (words, _, context) => searchPlugins(words, context) },
  install: {
    words: [1, 1],
    mayAgree: true,
    run: ([what = ''], { args }, context) => installPlugin(what, agreementIn(args.rest), context),
  },
  update: {
    words: [0, 1],
    mayAgree: true,
    run: ([name], { args }, context) => updatePlugins(name, agreementIn(args.rest), context),
  },
  remove: {
    words: [1, 1],
    option: '--force',
    run: ([name = ''], { args }, context) => removePlugin(name, args.rest.includes('--force'), context),
  },
};

export async function runPlugin(invocation: Invocation, context: CliContext): Promise<number> {
  const [name = 'list', ...rest] = invocation.args.rest;
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  const isOption = action?.mayAgree === true ? isYes : (word: string): boolean => word === action?.option;
  const words = rest.filter((word) => !isOption(word));
  const isUsable =
    action !== undefined &&
    words.length >= action.words[0] &&
    words.length <= action.words[1] &&
    !words.some((word) => word.startsWith('-'));
  if (isUsable) return action.run(words, invocation, context);
  context.printError(`usage: mountkeeper plugin ${PLUGIN_USAGE}`);
  return EXIT.usage;
}

/** The daemon's list; without a daemon, what one would find. */
async function listOf({ args, configFile }: Invocation, context: CliContext): Promise<number> {
  try {
    return await list(context);
  } catch (error) {
    if (!(error instanceof NoDaemon) || args.url !== undefined) throw error;
    context.printError(`${error.message}. This is what is found and what the configuration switches on:`);
    const rows = await listFound(configFile);
    if (context.json) context.print(JSON.stringify(rows));
    else context.table(renderPluginTable(rows));
    return EXIT.ok;
  }
}

export async function listFound(
  configFile: string,
  inTree: string = IN_TREE_PLUGINS,
): Promise<readonly PluginRow[]> {
  const peeked = await peekConfig(configFile);
  const { pluginDirs, stateDir } = peeked;
  const found = await discoverPlugins({
    inTree,
    thirdPartyDirs: await searchedFolders(pluginDirs, stateDir),
    stateDir,
    enabled: enabledIn(peeked),
    isolation: peeked.isolation,
    log: pino({ level: 'silent' }),
    importMs: IMPORT_MS,
  });
  return found.map((one) => rowOf(one, peeked.switched.get(one.name)));
}

/** In the form of GET /api/plugins. */
function rowOf(
  found: FoundPlugin,
  switched: boolean | undefined,
): PluginRow & { readonly effects: readonly string[] } {
  const { name, version, description, thirdParty, isolation = 'none', permissions = null } = found;
  const row = {
    name,
    version,
    description,
    reason: found.problem ?? null,
    effects: [],
    third_party: thirdParty,
    isolation,
    permissions,
  };
  if (!(switched ?? onUnlessSaid(found))) return { ...row, state: 'disabled' };
  return { ...row, state: found.problem === undefined ? 'enabled' : 'invalid' };
}

function urlOf(name: string): string {
  return `/api/plugins/${encodeURIComponent(name)}`;
}

async function post(url: string, content: unknown, context: CliContext): Promise<number> {
  const { status, body } = await context.request('POST', url, content);
  const { ok = false, message = `the daemon answered with status ${status}` } = JSON.parse(body) as {
    readonly ok?: boolean;
    readonly message?: string;
  };
  if (context.json) context.print(body);
  else if (ok) context.print(message);
  else context.printError(message);
  return ok ? EXIT.ok : EXIT.failure;
}

async function list(context: CliContext): Promise<number> {
  const answer = await context.request('GET', '/api/plugins');
  if (context.json) context.print(answer.body);
  const plugins = JSON.parse(answer.body) as PluginInfo[] | { readonly message?: string };
  if (!Array.isArray(plugins))
    throw new Error(
      (plugins as { readonly message?: string }).message ??
        `the daemon answered with status ${answer.status}`,
    );
  if (!context.json) context.table(renderPluginTable(plugins));
  return EXIT.ok;
}
