// @load quiet
/** What a third party's plugin declares crosses to the daemon, and hurts nobody there: its schema and its routes. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { inState, notices, place, source } from '../../support/plugins/strangers.ts';

const words = (schema: string): string =>
  source('trap', '', `config: { schema: Joi.object({ ${schema} }) },`);

/** Where its code runs is nothing that its schema says. */
const climber = (mark: string): string =>
  `import { writeFileSync } from 'node:fs';
try { writeFileSync(${JSON.stringify(mark)}, ''); } catch {}
${source(
  'climber',
  '',
  `config: { schema: Joi.object({ word: Joi.string() }).when(Joi.any(), { then: Joi.object({
    isolation: Joi.any().empty('own').default('none') }) }) },`,
)}`;

const SLOW = source(
  'slow',
  "ctx.route({ method: 'GET', path: '/{a}x{b}x{c}x{d}x{e}x{f}x{g}x{h}z', handler: () => 'x' });",
);

describe("a third party's declaration", () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let mark: string;

  before(async () => {
    scratch = await createScratch('schemas');
    mark = scratch.path('its code was in the daemon');
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    await place(scratch, 'trap', words('word: Joi.string()'));
    await place(scratch, 'climber', climber(mark), { permissions: [] });
    await place(scratch, 'slow', SLOW);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        'plugins.trap': { enabled: true, word: 'open' },
        'plugins.climber': { enabled: true },
        'plugins.slow': { enabled: true },
      },
    });
    await daemon.start(60_000);
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('has no rule for its table, by which it would come into the daemon', async () => {
    const { reason } = await inState(daemon, 'climber', 'invalid');
    assert.match(reason ?? '', /"whens" is said of the table as a whole, and only its keys can have rules/);
    assert.equal(existsSync(mark), false);
  });

  it('has no route that holds the daemon up, whoever asks', async () => {
    const { reason } = await inState(daemon, 'slow', 'invalid');
    assert.match(reason ?? '', /two parameters between two slashes/);
    assert.equal((await daemon.get(`/ext/slow/${'x'.repeat(200)}`)).status, 404);
  });

  it('keeps no daemon from its start, and no other change from being made, by what it takes', async () => {
    await inState(daemon, 'trap', 'active');
    await daemon.stop();
    await place(scratch, 'trap', words('word: Joi.forbidden()'));
    await daemon.start(60_000);
    await daemon.healthy();
    const { reason } = await inState(daemon, 'trap', 'failed');
    assert.match(reason ?? '', /\[plugins\.trap\] does not fit this version.*word is not allowed/);
    assert.match(JSON.stringify(await notices(daemon)), /the plugin \\"trap\\" is left out: its table/);
    const other = { log: { level: 'debug' } };
    assert.equal((await daemon.submit(daemon.text({ sections: other }))).status, 200);
    const worse = { ...other, 'plugins.trap': { enabled: true, word: 'shut' } };
    const refused = await daemon.submit(daemon.text({ sections: worse }));
    assert.equal(refused.status, 400);
    assert.match(JSON.stringify(refused.body), /word/);
    await inState(daemon, 'trap', 'failed');
    const mended = daemon.text({ sections: { log: { level: 'debug' } } });
    await daemon.writeConfig(mended.replace('word = "open"', ''));
    await inState(daemon, 'trap', 'active');
    assert.doesNotMatch(JSON.stringify(await notices(daemon)), /is left out/);
  });
});
