/** Events over the boundary, in both directions: tried with a real process. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { packageDir, prepareStage, stagePlugin } from '../../../../../core/plugins/discovery/stage.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';

const NAME = 'echo';
const SOURCE = `import { writeSync } from 'node:fs';
import { definePlugin, Joi } from 'mountkeeper';
const raw = Buffer.from('    {"is":"event","index":"push","value":7}');
raw.writeUInt32BE(raw.length - 4);
export default definePlugin({ name: '${NAME}', version: '1.0.0', apiVersion: 1, description: 'Echoes.',
  register(ctx) {
    ctx.event({ name: 'echo:other', summary: 'Never given.', value: Joi.any() });
    const said = ctx.event({ name: 'echo:said', summary: 'It has heard something.', value: Joi.number().max(9) });
    ctx.on('lamp:counted', (value) => { said(value); said(value + 1); });
    ctx.on('lamp:lit', () => { writeSync(3, raw); throw new Error('too bright'); });
  } });
`;

describe('events of a plugin in a process of its own', { timeout: 60_000 }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('runner-events');
  });
  after(() => scratch.close());

  it('go in and come out, in their order; what does not fit is named there and never sent', async () => {
    const stateDir = scratch.path('state');
    await prepareStage(stateDir);
    const source = scratch.path('source', NAME);
    await mkdir(source, { recursive: true });
    await writeFile(`${source}/package.json`, JSON.stringify({ type: 'module', main: 'index.js' }));
    await writeFile(`${source}/index.js`, SOURCE);
    const { folder } = await stagePlugin(source, NAME, stateDir, { hasTypes: () => Promise.resolve(false) });
    const { log, entries } = collectLog();
    const given: unknown[] = [];
    const place = { entry: `${folder}/index.js`, folder, name: NAME, stateDir, packageDir, permissions: [] };
    const supervisor = supervisorOf({ log }, place, {
      onEvent: (index, value) => void given.push([index, value]),
    });
    // A runner has 10, and may not go back to that below a daemon that was started with more.
    const former = getPriority();
    setPriority(Math.max(former, 11));
    try {
      await supervisor.start();
    } finally {
      // The tests after this one share the process. Only root may go back.
      if (process.geteuid?.() === 0) setPriority(former);
    }
    try {
      for (const value of [7, 9, 1]) await supervisor.call('event', 0, [value]);
      await assert.rejects(supervisor.call('event', 1, [{}]), /too bright/);
      const five = [7, 8, 9, 1, 2].map((value) => [1, value]);
      await until('all have come', () => given.length >= five.length, { timeoutMs: 20_000 });
      assert.deepEqual(given, five);
      const line = await until('it is named', () => entries.find(({ event }) => event === 'echo:said'), {
        timeoutMs: 20_000,
      });
      assert.match(String(line['reason']), /^does not fit its schema: /);
    } finally {
      await supervisor.stop('shutdown');
    }
  });
});
