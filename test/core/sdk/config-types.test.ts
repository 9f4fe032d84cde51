import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Joi, duration, filePath, rate, secret, size } from '../../../core/sdk/index.ts';
import type { StringSchema } from 'joi';

function problem(schema: StringSchema | ReturnType<typeof secret>, value: unknown): string | undefined {
  return Joi.object({ key: schema }).validate(
    { key: value },
    { convert: false, errors: { wrap: { label: false } } },
  ).error?.message;
}

describe('configuration types', () => {
  it('keep the text as it was written', () => {
    assert.equal(Joi.attempt('1h30m', duration()), '1h30m');
    assert.equal(Joi.attempt('1.5G', size()), '1.5G');
    assert.equal(Joi.attempt('0', rate()), '0');
  });

  it('say what is wrong with a value, braces and all', () => {
    assert.match(problem(duration(), '5 {{#x}}') ?? '', /^key: "5 \{\{#x\}\}" is not a duration/);
    assert.match(problem(size(), 'big') ?? '', /^key: "big" is not a size/);
    assert.match(problem(rate(), 'fast') ?? '', /^key: "fast" is not a rate/);
    assert.equal(problem(duration(), 5), 'key must be a string');
  });

  it('hold the limits, also for zero', () => {
    const bounded = duration({ min: '200ms', max: '1h' });
    assert.equal(problem(bounded, '0'), 'key: "0" is too little; the least is "200ms"');
    assert.equal(problem(bounded, '2h'), 'key: "2h" is too much; the most is "1h"');
    assert.deepEqual(
      ['200ms', '60m'].map((value) => problem(bounded, value)),
      [undefined, undefined],
    );
  });

  it('take a secret literally or by one reference', () => {
    const good = ['', 'literal', { env: 'NAME' }, { file: '/path' }, { credential: 'name' }];
    assert.deepEqual(
      good.map((value) => problem(secret(), value)),
      good.map(() => undefined),
    );
    for (const value of [5, true, {}, { env: 'A', file: '/b' }, { variable: 'A' }, { env: 5 }, ['a']]) {
      assert.notEqual(problem(secret(), value), undefined, JSON.stringify(value));
    }
  });

  it('refuse the mask in place of a secret', () => {
    assert.equal(
      problem(secret(), '********'),
      'key holds the mask "********" in place of a secret; ' +
        'write the secret itself, { env = "NAME" }, { file = "/path" } ' +
        'or { credential = "name" }',
    );
  });

  it('refuse a path with a NUL character', () => {
    assert.equal(problem(filePath(), '/a\0b'), 'key holds a NUL character, which no path can');
  });
});
