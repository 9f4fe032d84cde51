import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import Joi from 'joi';
import { sleep } from '../../../../support/platform/wait.ts';
import { builtSchema, carriedSchema } from '../../../../../core/plugins/runner/carried/carried-schema.ts';

const EVIL = `${'a'.repeat(27)}b`;

/** As it comes out of the runner. */
function carried(schema: Joi.ObjectSchema): Joi.ObjectSchema {
  return builtSchema(carriedSchema('the schema', schema));
}

describe('patterns of a carried schema', () => {
  it('match as they are written', () => {
    const schema = carried(
      Joi.object({
        name: Joi.string().pattern(/^[a-z]{1,8}$/i),
        code: Joi.string().pattern(/\d/, { invert: true }),
        clean: Joi.string().replace(/o/g, '0'),
        list: Joi.array().items(Joi.string().pattern(/^x/)),
        more: Joi.object().pattern(/^extra_\d+$/, Joi.number()),
      }),
    );
    const { error, value } = schema.validate({
      name: 'Rose',
      clean: 'foo',
      list: ['xa'],
      more: { extra_1: 4 },
      code: 'k',
    });
    assert.equal(error, undefined);
    assert.deepEqual(value, { name: 'Rose', clean: 'f00', list: ['xa'], more: { extra_1: 4 }, code: 'k' });
    for (const wrong of [{ name: 'rose 1' }, { list: ['a'] }, { more: { extra_a: 4 } }, { code: 'k1' }])
      assert.ok(schema.validate(wrong).error, JSON.stringify(wrong));
    assert.match(
      schema.validate({ name: 'rose 1' }).error?.message ?? '',
      /fails to match the required pattern/,
    );
  });

  it('that take for ever refuse the value, wherever they stand', () => {
    const evil = Joi.string().pattern(/^(a+)+$/);
    const cases: readonly (readonly [Joi.ObjectSchema, object])[] = [
      [Joi.object({ name: evil.default(EVIL) }), { name: EVIL }],
      [Joi.object({ list: Joi.array().items(evil) }), { list: [EVIL, EVIL] }],
      [
        Joi.object({ deep: Joi.object({ name: Joi.alternatives(Joi.number(), evil) }) }),
        { deep: { name: EVIL } },
      ],
      [
        Joi.object({
          kind: Joi.string(),
          name: Joi.string().when('kind', { is: evil, otherwise: Joi.forbidden() }),
        }),
        { kind: EVIL, name: 'x' },
      ],
      [Joi.object({ more: Joi.object().pattern(/^(a+)+$/, Joi.number()) }), { more: { [EVIL]: 1 } }],
      [Joi.object({ name: Joi.string().empty(evil).valid('x') }), { name: EVIL }],
      [Joi.object({ name: Joi.string().pattern(/^(a+)+$/, { invert: true }) }), { name: EVIL }],
    ];
    for (const [index, [schema, given]] of cases.entries()) {
      const before = process.cpuUsage();
      const { error } = carried(schema).validate(given);
      const spentMs = process.cpuUsage(before).user / 1_000;
      // The pattern itself would take half a minute.
      assert.ok(spentMs < 5_000, `${index}: ${spentMs} ms`);
      assert.ok(error, String(index));
    }
  });

  it('that get a little processor time in each attempt are given up after the sum of it', (t) => {
    const spentMs = 60;
    let attempts = 0;
    t.mock.method(process, 'cpuUsage', (before?: object) => {
      if (before !== undefined) attempts += 1;
      return { user: before === undefined ? 0 : spentMs * 1_000, system: 0 };
    });
    const { error } = carried(Joi.object({ name: Joi.string().pattern(/^(a+)+$/) })).validate({ name: EVIL });
    assert.ok(error);
    assert.equal(attempts, 3, '180 of 200 ms, of which a fifth is the clock');
  });

  it('have their time although the machine is busy with others', async () => {
    const module = new URL('../../../../../core/plugins/runner/carried/timed-patterns.js', import.meta.url);
    // A pattern of 20 to 40 ms that finds something at last, in a process that is stopped while it works.
    const code = `
      import { createRequire } from 'node:module';
      import { timePatterns } from ${JSON.stringify(module.href)};
      const Joi = createRequire(${JSON.stringify(import.meta.url)})('joi');
      const slow = () => new RegExp(['^(a+)+$', '^a+b$'].join('|'));
      let text = 'aaaaaaaaaab';
      for (let tookMs = 0; tookMs < 20; ) {
        text = 'a' + text;
        const before = process.cpuUsage();
        slow().exec(text);
        tookMs = process.cpuUsage(before).user / 1000;
      }
      const schema = Joi.string().pattern(slow());
      timePatterns(schema);
      process.stdout.write('go', () => {
        const until = Date.now() + 3_000;
        let count = 0;
        while (Date.now() < until) if (schema.validate(text).error) count += 1;
        process.stdout.write(' refused ' + count + ' ');
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = once(child, 'close');
    while (!said.startsWith('go')) await once(child.stdout, 'data');
    for (let round = 0; round < 8; round += 1) {
      child.kill('SIGSTOP');
      await sleep(200);
      child.kill('SIGCONT');
      await sleep(50);
    }
    await ended;
    assert.equal(said, 'go refused 0 ');
  });
});
