/** `mountkeeper plugin list | new NAME | check DIR`. */
import type { CliContext, PluginInfo } from '../api.ts';
import { checkPlugin, newPlugin, renderPluginTable } from '../plugin/cli.ts';
import type { Invocation } from './dispatch.ts';
import { EXIT } from './exit-codes.ts';

export async function runPlugin(invocation: Invocation, context: CliContext): Promise<number> {
  const [action = 'list', subject] = invocation.args.rest;
  if (action === 'list') return list(context);
  if (subject !== undefined && action === 'new') return newPlugin(subject, context);
  if (subject !== undefined && action === 'check') return checkPlugin(subject, context);
  context.printError('usage: mountkeeper plugin list | new NAME | check DIR');
  return EXIT.usage;
}

async function list(context: CliContext): Promise<number> {
  const answer = await context.request('GET', '/api/plugins');
  if (context.json) context.print(answer.body);
  const plugins = JSON.parse(answer.body) as PluginInfo[] | { readonly message?: string };
  if (!Array.isArray(plugins)) throw new Error((plugins as { readonly message?: string }).message ?? `the daemon answered with status ${answer.status}`);
  if (!context.json) context.table(renderPluginTable(plugins));
  return EXIT.ok;
}
