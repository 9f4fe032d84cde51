import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { nodeFlags } from '../../../../../core/plugins/runner/process/confinement.ts';

const CORE = new URL('../../../../../core/', import.meta.url).href;
const LIBRARIES = ['tapable', '@hapi/hapi', '@hapi/boom', 'joi', 'pino'];

/** What is printed by a process that has all of a runner's modules, and what plugins import. */
function inRunner(code: string): string {
  const flag = nodeFlags({ permissions: [], folder: '', name: '', entry: '', stateDir: '', packageDir: '/' });
  const conditions = flag.filter((one) => one.startsWith('--conditions='));
  const all = `const { Boom, Joi, size } = await import('${CORE}sdk/index.js');
    await import('${CORE}plugins/runner/inside/loaded-plugin.js');
    await import('${CORE}plugins/discovery/manifest.js');
    const { runnerLog } = await import('${CORE}plugins/runner/inside/runner-log.js');
    runnerLog('info', () => undefined).info({ err: new Error('x') }, 'a line');
    void [Boom, Joi, size];
    ${code}
    const { _cache } = (await import('node:module')).default;
    console.log(Object.keys(_cache).map((file) => file.split('/node_modules/').at(-1).split('/lib/')[0]).join(' '));`;
  const args = [...conditions, '--input-type=module', '--eval', all];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.match(stderr, /^$/);
  return stdout;
}

describe('the process of a plugin', () => {
  it('loads nothing that a plugin may have no use for: each library costs every process megabytes', () => {
    const printed = inRunner('');
    for (const library of LIBRARIES)
      assert.ok(
        !printed.split(/[\s/]+/).includes(library.split('/').at(-1) ?? ''),
        `${library} in ${printed}`,
      );
  });

  it('has Joi and Boom whole for a plugin that uses them', () => {
    const printed = inRunner(`
      const own = Joi.extend((joi) => ({ type: 'even', base: joi.number(), validate: (value) => ({ value }) }));
      const schema = Joi.object({ a: own.even(), b: size().default('1M') });
      console.log(Joi.isSchema(schema), JSON.stringify(Joi.attempt({ a: 2 }, schema)), Object.keys(Joi).includes('any'),
        'ref' in Joi, Boom.isBoom(Boom.notFound('gone')), new Boom.Boom('x') instanceof Boom.Boom);`);
    assert.match(printed, /^true \{"a":2,"b":"1M"\} true true true true\n/);
  });
});
