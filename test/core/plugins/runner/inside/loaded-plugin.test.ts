/** A plugin in its process while the daemon does not read what it says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { definePlugin } from 'mountkeeper';
import type { PluginContext } from 'mountkeeper';
import { LoadedPlugin } from '../../../../../core/plugins/runner/inside/loaded-plugin.ts';
import type { Begin, Said } from '../../../../../core/plugins/runner/protocol.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { until } from '../../../../support/platform/wait.ts';

const BEGIN: Begin = {
  entry: '/garden/index.js',
  folder: '/garden',
  name: 'garden',
  declared: {},
  task: 'run',
  config: {},
  paths: { stateDir: '/', packageDir: '/' },
  logLevel: 'info',
  world: {},
};

describe('a plugin whose process is full of what the daemon has not read yet', () => {
  async function garden() {
    const said: Said[] = [];
    const daemon = { isFull: false, refused: new Set<Said['is']>() };
    const beds = { count: 1 };
    let ctx: PluginContext | undefined;
    const plugin = definePlugin({
      name: 'garden',
      version: '1.0.0',
      apiVersion: 1,
      description: 'A garden.',
      register(given) {
        ctx = given;
        given.status('garden' as never, () => beds.count as never);
        given.tap('collectNotices', () => [{ level: 'info', message: 'It is dry.' }]);
      },
    });
    const say = (message: Said): boolean => {
      if (daemon.isFull) daemon.refused.add(message.is);
      else said.push(message);
      return !daemon.isFull;
    };
    const loaded = new LoadedPlugin(plugin, BEGIN, { log: collectLog().log, say, hasNeighbours: false });
    await loaded.activate();
    assert.ok(ctx);
    return { beds, ctx, daemon, loaded, said };
  }
  const hears = (what: string, look: () => unknown): Promise<unknown> =>
    until(what, look, { timeoutMs: 10_000 });

  it('is told that a command was not sent, and waits for the answer to one that was', async (t) => {
    const { ctx, daemon, loaded, said } = await garden();
    t.after(() => loaded.dispose('shutdown'));
    daemon.isFull = true;
    await assert.rejects(
      ctx.send('reconnect', 'photos'),
      /^Error: ctx\.send\("reconnect"\) was not sent: the daemon has not read yet what the plugin has said before/,
    );
    daemon.isFull = false;
    const sent = ctx.send('reconnect', 'photos');
    const { id } = said.at(-1) as Extract<Said, { is: 'send' }>;
    loaded.take({ is: 'answer', id });
    await sent;
  });

  it('answers what it was asked once the daemon reads again, and tells what is so then', async (t) => {
    const { beds, daemon, loaded, said } = await garden();
    t.after(() => loaded.dispose('shutdown'));
    said.length = 0;
    daemon.isFull = true;
    beds.count = 2;
    loaded.take({ is: 'call', id: 7, kind: 'tap', index: 0, args: [] });
    await hears('that both were refused', () => daemon.refused.has('answer') && daemon.refused.has('state'));
    assert.equal(said.length, 0);
    daemon.isFull = false;
    await hears('the answer', () => said.some((one) => one.is === 'answer'));
    await hears('the state', () => said.some((one) => one.is === 'state'));
    assert.deepEqual(
      said.filter(({ is }) => is === 'answer'),
      [{ is: 'answer', id: 7, value: [{ level: 'info', message: 'It is dry.' }] }],
    );
    const state = said.find((one) => one.is === 'state');
    assert.deepEqual(state?.is === 'state' && state.status, [{ value: 2 }]);
  });
});
