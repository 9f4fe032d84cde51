/** `mountkeeper plugin list | new NAME | check DIR`. */
import { pino } from 'pino';
import type { CliContext } from '../../contract/cli.ts';
import type { PluginInfo } from '../../contract/services.ts';
import { enabledIn, peekConfig } from '../../config/peek.ts';
import { checkPlugin, newPlugin, renderPluginTable } from './author.ts';
import type { PluginRow } from './author.ts';
import { discoverPlugins } from '../../plugins/discovery/discover.ts';
import { onUnlessSaid } from '../../plugins/discovery/found.ts';
import type { FoundPlugin } from '../../plugins/discovery/found.ts';
import { IN_TREE_PLUGINS } from '../../platform/package.ts';
import { NoDaemon } from '../client.ts';
import type { Invocation } from '../invocation.ts';
import { EXIT } from '../exit-codes.ts';

const IMPORT_MS = 10_000;

export async function runPlugin(invocation: Invocation, context: CliContext): Promise<number> {
  const [action = 'list', subject] = invocation.args.rest;
  if (action === 'list') return listOf(invocation, context);
  if (subject !== undefined && action === 'new') return newPlugin(subject, context);
  if (subject !== undefined && action === 'check') return checkPlugin(subject, context);
  context.printError('usage: mountkeeper plugin list | new NAME | check DIR');
  return EXIT.usage;
}

/** What the daemon says; without one, what it would find. */
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
  const { pluginDirs: thirdPartyDirs, stateDir } = peeked;
  const found = await discoverPlugins({
    inTree,
    thirdPartyDirs,
    stateDir,
    enabled: enabledIn(peeked),
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
  const { name, version, description, thirdParty } = found;
  const row = {
    name,
    version,
    description,
    reason: found.problem ?? null,
    effects: [],
    third_party: thirdParty,
  };
  if (!(switched ?? onUnlessSaid(found))) return { ...row, state: 'disabled' };
  return { ...row, state: found.problem === undefined ? 'enabled' : 'invalid' };
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
