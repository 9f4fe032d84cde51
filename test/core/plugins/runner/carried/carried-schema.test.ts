import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Joi from 'joi';
import { builtSchema, carriedSchema } from '../../../../../core/plugins/runner/carried/carried-schema.ts';

describe('references in a carried schema', () => {
  it('may lead to other keys of the schema', () => {
    const schema = Joi.object({
      most: Joi.number().default(5).description('As many as {[/there]} are, or {...}.'),
      beds: Joi.object({ count: Joi.number().max(Joi.ref('...most')) }),
      list: Joi.array().items(Joi.object({ count: Joi.number().max(Joi.ref('....most')) })),
    });
    const built = builtSchema(carriedSchema('the schema', schema));
    assert.ok(built.validate({ beds: { count: 6 } }).error);
    assert.ok(built.validate({ list: [{ count: 6 }] }).error);
    assert.equal(built.validate({ beds: { count: 5 }, list: [{ count: 5 }] }).error, undefined);
  });

  it('are refused where they lead out of it: the secrets of others are there', () => {
    const any = Joi.any();
    const evil: readonly Joi.ObjectSchema[] = [
      Joi.object({ copy: any.default(Joi.ref('/connections')) }),
      Joi.object({ copy: any.default(Joi.ref('...smb')) }),
      Joi.object({ deep: Joi.object({ copy: any.default(Joi.ref('....smb')) }) }),
      Joi.object({ description: Joi.object({ copy: any.default(Joi.ref('/connections')) }) }),
      Joi.object({ copy: any.default(Joi.x('{[/connections]}')) }),
      Joi.object({ copy: any.default(Joi.x('{...smb}')) }),
      Joi.object({ copy: Joi.number().messages({ 'number.base': '{{[/web]}}' }) }),
      Joi.object({ copy: Joi.number().messages({ 'number.base': '{...smb}' }) }),
      Joi.object({ copy: any.when('/web.password', { is: 'x', otherwise: Joi.forbidden() }) }),
      Joi.object({ copy: any.valid(Joi.in('/users')) }),
    ];
    for (const [index, schema] of evil.entries()) {
      assert.throws(() => carriedSchema('the schema', schema), /leads out of its own section/, String(index));
      // A hostile process does not ask whether its schema can be carried.
      const sent = JSON.parse(JSON.stringify(schema.describe())) as object;
      assert.throws(() => builtSchema(sent), /leads out of its own section/, String(index));
    }
  });
});

describe('a carried schema and the keys of others beside its own', () => {
  const any = Joi.any();
  const own = Joi.object({ copy: any });
  /** What each says of the whole table, as Joi describes it. */
  const evil: Readonly<Record<string, Joi.ObjectSchema>> = {
    whens: own.when(any, { otherwise: Joi.object({ isolation: any.empty('own').default('none') }) }),
    renames: own.rename('password', 'copy'),
    dependencies: own.without('password', 'copy'),
    patterns: own.pattern(/^p/, Joi.forbidden()),
    preferences: own.prefs({ noDefaults: true }),
    rules: own.max(0),
    allow: own.valid('x'),
    invalid: own.invalid('x'),
    strip: own.strip(),
    presence: own.forbidden(),
    only: own.allow('x').only(),
    result: own.raw(),
    empty: own.empty(Joi.object({ password: any })),
    failover: own.failover({}),
    label: own.label('x'),
    id: own.id('x'),
    alterations: own.alter({ x: (schema) => schema.max(0) }),
  };
  for (const [what, schema] of Object.entries(evil))
    it(`is refused for what it says of the table as a whole: ${what}`, () => {
      assert.throws(() => carriedSchema('the schema', schema), /cannot be carried/);
      const sent = JSON.parse(JSON.stringify(schema.describe())) as object;
      assert.throws(() => builtSchema(sent), /said of the table as a whole|is not|Invalid|must be/);
    });

  it('may say what it is for, and that other keys may stand there, too', () => {
    const schema = Joi.object({ copy: any })
      .unknown()
      .default()
      .description('Copies.')
      .meta({ tier: 'live' });
    assert.equal(builtSchema(carriedSchema('the schema', schema)).validate({ x: 1 }).error, undefined);
  });

  it('is refused for a reference of a key to one of theirs, in whatever way', () => {
    const secret = Joi.ref('password');
    const ways: readonly Joi.ObjectSchema[] = [
      Joi.object({ copy: any.default(secret) }),
      Joi.object({ copy: any.default(Joi.ref('users.0.password')) }),
      Joi.object({ copy: any.default(Joi.ref('..')) }),
      Joi.object({ copy: any.failover(secret) }),
      Joi.object({ copy: any.valid(secret) }),
      Joi.object({ copy: any.valid(Joi.in('users')) }),
      Joi.object({ copy: any.invalid(secret) }),
      Joi.object({ copy: any.empty(Joi.valid(secret)) }),
      Joi.object({ copy: any.when('password', { is: 'x', otherwise: Joi.forbidden() }) }),
      Joi.object({ copy: any.when(secret, { is: 'x', otherwise: Joi.forbidden() }) }),
      Joi.object({ copy: any.when('copy2', { is: secret, otherwise: Joi.forbidden() }), copy2: any }),
      Joi.object({ copy: Joi.alternatives().conditional('isolation', { is: 'own', otherwise: any }) }),
      Joi.object({ copy: Joi.alternatives(Joi.valid(secret), Joi.number()) }),
      Joi.object({ copy: Joi.number().min(secret) }),
      Joi.object({ copy: Joi.array().items(any.default(Joi.ref('...password'))) }),
      Joi.object({ deep: Joi.object({ copy: any.default(Joi.ref('...password')) }) }),
      Joi.object({ deep: Joi.object({ copy: any.default(Joi.ref('...')) }) }),
      // Joi notes none of these.
      Joi.object({ copy: any.when('on', { is: true, otherwise: any.default(secret) }), on: any }),
      Joi.object({
        copy: any.when('on', { is: true, otherwise: any.default(Joi.ref('....web.password')) }),
        on: any,
      }),
      Joi.object({ copy: any.when(Joi.valid(Joi.ref('....web.password')), { otherwise: any }) }),
      Joi.object({ copy: any.empty(Joi.valid(Joi.ref('....web.password'))) }),
      Joi.object({ copy: Joi.object().pattern(Joi.valid(Joi.ref('....web.password')), any) }),
      Joi.object({ copy: Joi.array().has(Joi.valid(Joi.ref('.....web.password'))) }),
      Joi.object({ keys: Joi.object({ items: any.default(Joi.ref('...password')) }) }),
    ];
    for (const [index, schema] of ways.entries()) {
      const sent = JSON.parse(JSON.stringify(schema.describe())) as object;
      assert.throws(() => builtSchema(sent), /leads out of its own section/, String(index));
    }
  });
});

describe('what would take for ever, or all memory, in a carried schema', () => {
  const ways = (count: number): readonly Joi.Schema[] => Array.from({ length: count }, () => Joi.link('#t'));
  const longer = Joi.string().default(Joi.x('{a}'.repeat(20)));
  const evil: Readonly<Record<string, readonly [Joi.ObjectSchema, RegExp]>> = {
    'a link': [Joi.object({ a: Joi.alternatives(...ways(2), Joi.valid(1)) }).id('t'), /a link in it leads/],
    'a default that repeats another': [Joi.object({ a: Joi.string(), b: longer }), /a template in it/],
    'the same of what is refused': [
      Joi.object({ a: Joi.string(), b: Joi.required().failover(Joi.x('{a}{a}')) }),
      /a template in it/,
    ],
    'a name that doubles': [Joi.object().rename(/(.*)/, Joi.x('{#1}{#1}')), /a template in it/],
  };
  for (const [what, [schema, reason]] of Object.entries(evil))
    it(`is refused: ${what}`, () => {
      assert.throws(() => carriedSchema('the schema', schema), reason);
      assert.throws(() => builtSchema(JSON.parse(JSON.stringify(schema.describe())) as object), reason);
    });

  it('is no key of that name, and no word for people', () => {
    const schema = Joi.object({
      link: Joi.object({ type: Joi.valid('link'), template: Joi.string().default('{a}') }),
      a: Joi.string().messages({ 'string.base': '{#label} is no text' }).meta({ template: '{a}' }),
      b: Joi.string().pattern(/^a/).message('begins with a'),
      c: Joi.number().min(1).message('{#label} is small').max(3).message('{#label} is large'),
    });
    const { value } = builtSchema(carriedSchema('the schema', schema)).validate({ link: {} }) as {
      value: unknown;
    };
    assert.deepEqual(value, { link: { template: '{a}' } });
  });
});
