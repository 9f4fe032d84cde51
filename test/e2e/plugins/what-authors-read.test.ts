// @load quiet
/** What the author of a plugin reads of it, of a real daemon: where it failed, what is missing, and each thing once. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { inState, place, plugin } from '../../support/plugins/strangers.ts';

/** By the plugin's name; line 4 is what it does. */
const source = (name: string, body: string, imports = ''): string =>
  `import { definePlugin } from 'mountkeeper';\n${imports}\n` +
  `export default definePlugin({ name: '${name}', apiVersion: 1, description: 'Stumbles.', ` +
  `register(ctx) {\n${body} } });\n`;

const PLUGINS: Readonly<Record<string, string>> = {
  effect: "ctx.effect('port', () => { throw new Error('no port'); });",
  tap: "ctx.tap('afterCycle', () => { throw new Error('no bed'); });",
  interval: "ctx.every({ name: 'water', ms: () => 200, run: async () => { throw new Error('no water'); } });",
  card: "ctx.tab({ id: 'card', title: 'Card', place: 'card', render: () => { throw new Error('no card'); } });",
};

describe('a plugin that stumbles', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const names = Object.keys(PLUGINS).flatMap((name) => [name, `${name}-inside`]);
  const lines = async (name: string): Promise<readonly string[]> =>
    (await daemon.log()).split('\n').filter((line) => line.includes(name));

  before(async () => {
    scratch = await createScratch('authors');
    await letOthersEnter(scratch.path());
    const nas = await Nas.create(scratch, { files: {} });
    for (const [name, body] of Object.entries(PLUGINS))
      for (const one of [name, `${name}-inside`])
        await place(scratch, one, source(one, body.replace("id: 'card'", `id: '${one}'`)), {
          version: '3.2.1',
        });
    await place(scratch, 'lacks', source('lacks', '', "import 'left-pad';"), { version: '3.2.1' });
    const on = [...names, 'lacks'].map((name) => [
      `plugins.${name}`,
      { enabled: true, ...(name.endsWith('-inside') && { isolation: 'none' }) },
    ]);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [],
      sections: { plugins: { dirs: [scratch.path('plugins')] }, ...Object.fromEntries(on) },
    });
    await daemon.start(60_000);
  });
  after(() => scratch.close());

  it('is told where in its own code, beside its state and in the log', async () => {
    for (const name of ['effect', 'effect-inside'])
      assert.match(
        (await inState(daemon, name, 'failed')).reason ?? '',
        /effect "port": no port \(at index\.js:4:\d+\)$/,
      );
    for (const [name, said] of [
      ['tap', /no bed \(at index\.js:4:\d+\)/],
      ['tap-inside', /error="no bed" at=index\.js:4:\d+/],
      ['interval', /error="no water" at=index\.js:4:\d+/],
      ['interval-inside', /error="no water" at=index\.js:4:\d+/],
    ] as const)
      await until(
        `${name} is told`,
        async () => (await lines(` ${name}: `)).some((line) => said.test(line)),
        { timeoutMs: 20_000 },
      );
  });

  it('has the version of its package.json, and is told which package is missing', async () => {
    for (const name of ['tap', 'tap-inside'])
      assert.equal(((await plugin(daemon, name)) as { version?: string } | undefined)?.version, '3.2.1');
    const { reason } = await inState(daemon, 'lacks', 'invalid');
    assert.equal(
      reason,
      `it imports the package "left-pad", which is not in its node_modules; ` +
        `run 'npm install left-pad' in ${scratch.path('plugins/lacks')}`,
    );
  });

  it('is told once of what it does not draw, however often that is', async () => {
    const draw = async (): Promise<string> =>
      (await fetch(`http://127.0.0.1:${daemon.port}/?overview=yes`)).text();
    for (let time = 0; time < 5; time += 1, await sleep(100)) assert.match(await draw(), /role="alert"/);
    for (const name of ['card', 'card-inside'])
      assert.equal((await lines(`shownBy=${name} `)).length, 1, (await lines(`shownBy=${name} `)).join('\n'));
  });
});
