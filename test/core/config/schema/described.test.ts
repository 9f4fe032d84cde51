import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { described } from '../../../../core/config/schema/described.ts';
import { coreSections, shareKeys } from '../../../../core/config/schema/core-schema.ts';
import { Joi } from '../../../../core/sdk/index.ts';
import { inTreePlugins } from '../../../support/plugins/in-tree.ts';

describe('descriptions of schemas', () => {
  it("are Joi's own, of every key of the core and of all plugins", async () => {
    const plugins = (await inTreePlugins()).flatMap((one) => (one.plugin ? [one.plugin.config] : []));
    const schemas = [
      ...coreSections().map(([, schema]) => schema),
      shareKeys(),
      ...plugins.flatMap((config) => (config ? [config.schema, config.share] : [])),
    ].filter((schema) => schema !== undefined);
    assert.ok(schemas.length > 20, `${schemas.length} schemas`);
    for (const schema of schemas) assert.deepEqual(described(schema), schema.describe());
  });

  it('are not checked by Joi, which checks everything else as before', () => {
    const joi = Joi as unknown as { assert: unknown };
    const { assert: real } = joi;
    let checks = 0;
    joi.assert = () => (checks += 1);
    try {
      described(Joi.object({ a: Joi.string(), b: Joi.array().items(Joi.number()) }));
      assert.equal(checks, 0);
      Joi.object({ a: Joi.string() }).describe();
      assert.ok(checks > 0, 'Joi checks what it describes when nobody keeps it from that');
    } finally {
      joi.assert = real;
    }
    assert.throws(() => Joi.assert(1, Joi.string()), /must be a string/);
  });

  it('are given of a frozen Joi, too', () => {
    const frozen = Object.freeze(
      Joi.extend((joi: typeof Joi) => ({ type: 'even', base: joi.number() })) as typeof Joi,
    );
    const schema = frozen.object({ a: frozen.string() });
    assert.deepEqual(described(schema), schema.describe());
  });
});
