// @load quiet
/** A stranger's plugin that lets people in, and is gone, or cannot be read: nobody is let in until it is back. */
import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { place, source } from '../../support/plugins/strangers.ts';
import type { PluginJson } from '../../support/plugins/strangers.ts';
import { until as untilWithin } from '../../support/platform/wait.ts';

const until = <T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> =>
  untilWithin(what, look, { timeoutMs: 30_000 });

/** Lets in who knows a word. */
const GATE = `ctx.hapi({ name: 'words', register: (server) => server.ext('onPreAuth', (request, h) =>
  request.headers['x-word'] === 'sesame' || isFromCommandSocket(request.raw.req)
    ? h.continue : h.response('who are you?').code(401).takeover()) });`;

describe("a stranger's guard", () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const manifest = { mountkeeper: { apiVersion: 1, guard: true } };
  const config = (enabled: boolean, dirs = [scratch.path('plugins')]): Promise<void> =>
    daemon.writeConfig(
      daemon.text({
        sections: {
          plugins: { dirs },
          'plugins.gate': { enabled, isolation: 'none' },
        },
      }),
    );

  before(async () => {
    scratch = await createScratch('missing-guard');
    const text = source('gate', GATE, 'guard: true,').replace(
      '{ definePlugin',
      '{ isFromCommandSocket, definePlugin',
    );
    await place(scratch, 'gate', text, manifest);
    daemon = await Daemon.create(scratch, { connections: [{ name: 'nas', type: 'local' }], shares: [] });
    await config(true);
    await start();
  });
  after(() => scratch.close());

  const answer = async (word = 'sesame'): Promise<number> =>
    (await daemon.request('GET', '/api/status', undefined, { 'x-word': word })).status;
  /** `daemon.start` waits for an answer that a guard refuses. */
  const start = async (): Promise<void> => {
    void daemon.spawn();
    await until('the daemon answers', async () => (await daemon.get('/healthz')).status < 500);
  };
  const answers = (status: number): Promise<unknown> =>
    until(`the API answers ${String(status)}`, async () => (await answer()) === status);
  /** As whoever repairs it sees it: by the command socket. */
  const seen = async (): Promise<PluginJson | undefined> => {
    const { code, stdout, stderr } = await daemon.cli('plugin', 'list', '--json');
    assert.equal(code, 0, stderr);
    return (JSON.parse(stdout) as PluginJson[]).find(({ name }) => name === 'gate');
  };
  const again = async (): Promise<void> => {
    await daemon.stop();
    await start();
  };

  it('guards', async () => {
    await answers(200);
    assert.equal(await answer('open'), 401);
  });

  it('guards on after its folder has gone, and after a restart nobody is let in until it is back', async () => {
    await rename(scratch.path('plugins', 'gate'), scratch.path('away'));
    await until('it is noticed', async () => (await seen())?.state === 'invalid');
    assert.match((await seen())?.reason ?? '', /in no folder of plugins.*as it was before runs on$/);
    assert.equal(await answer('open'), 401);
    await again();
    assert.equal(await answer(), 503);
    assert.match((await seen())?.reason ?? '', /plugins\.gate\.enabled = false; .*nobody is let in/);
    await rename(scratch.path('away'), scratch.path('plugins', 'gate'));
    await answers(200);
    assert.equal(await answer('open'), 401);
  });

  it('lets nobody in where its package.json cannot be read', async () => {
    const file = scratch.path('plugins', 'gate', 'package.json');
    for (const spoil of [() => writeFile(file, '{'), () => rm(file)]) {
      await spoil();
      await again();
      assert.equal(await answer(), 503);
      assert.match((await seen())?.reason ?? '', /package\.json.*nobody is let in/);
    }
  });

  it('is done without where the configuration says so', async () => {
    await config(false);
    await answers(200);
    assert.equal(await answer('open'), 200);
  });

  it('lets nobody in either where it is switched on and there is no folder of plugins at all', async () => {
    await config(false, []);
    await answers(200);
    await config(true, []);
    await answers(503);
  });
});
