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
