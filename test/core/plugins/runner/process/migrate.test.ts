/** A migration runs in a process of its own, for a limited time. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { prepareStage, stagePlugin } from '../../../../../core/plugins/discovery/stage.ts';
import { migratedBy } from '../../../../../core/plugins/runner/process/first-run.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';

const SOURCE = `import { definePlugin, Joi } from 'mountkeeper';
export default definePlugin({ name: 'garden', version: '1.0.0', apiVersion: 1, description: 'A garden.',
  config: { schema: Joi.object({}), migrate: ({ hang, ...rest }) => {
    if (hang) return new Promise(() => {});
    return { ...rest, by: process.pid };
  } },
  register() {} });
`;

describe('a migration', { timeout: 60_000 }, () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('migrate');
  });
  after(() => scratch.close());

  it('is given the table and gives another, in its own process; one that hangs is ended with the reason', async () => {
    const stateDir = scratch.path('state');
    await prepareStage(stateDir);
    const source = scratch.path('garden');
    await mkdir(source, { recursive: true });
    await writeFile(`${source}/package.json`, JSON.stringify({ type: 'module', main: 'index.js' }));
    await writeFile(`${source}/index.js`, SOURCE);
    const { folder } = await stagePlugin(source, 'garden', stateDir);
    const declared = { guard: false, shareKeys: [], permissions: [] };
    const request = { entry: `${folder}/index.js`, folder, name: 'garden', declared, stateDir };
    const given = (await migratedBy({ ...request, timeoutMs: 30_000 }, { a: 1 })) as {
      a: number;
      by: number;
    };
    assert.equal(given.a, 1);
    assert.notEqual(given.by, process.pid);
    await assert.rejects(
      migratedBy({ ...request, timeoutMs: 3_000 }, { hang: true }),
      /it did not migrate its table within 3 s/,
    );
  });
});
