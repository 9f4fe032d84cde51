import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Joi } from 'mountkeeper';
import {
  manifestProblem,
  pickPlugin,
  readPackage,
  thirdPartyProblem,
} from '../../../../core/plugins/discovery/manifest.js';
import { small } from '../../../support/plugins/small-plugins.ts';

const good = {
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Waters the garden.',
  register: () => undefined,
};

describe('manifest', () => {
  it('of a whole plugin has no problem', () => {
    assert.equal(manifestProblem(good, 'garden'), undefined);
    assert.equal(
      manifestProblem({ ...good, requires: ['mounter'], config: { schema: Joi.object({}) } }, 'garden'),
      undefined,
    );
  });

  for (const [what, change, sentence] of [
    [
      'an apiVersion of the future',
      { apiVersion: 2 },
      /it is written for apiVersion 2, this Mountkeeper has apiVersion 1; install/,
    ],
    ['no apiVersion', { apiVersion: undefined }, /apiVersion undefined/],
    ['a name in capitals', { name: 'Garden' }, /is not kebab-case; use small letters/],
    [
      'another name than its folder',
      { name: 'yard' },
      /its name is "yard" but its folder is called "garden"/,
    ],
    ['a reserved name', { name: 'dirs' }, /the name "dirs" is reserved/],
    ...['cache', 'file', 'nas', 'share', 'writeback'].map(
      (name) =>
        [`the first word of our notifications, ${name}`, { name }, /the name "\w+" is reserved/] as const,
    ),
    ['no version', { version: 1 }, /version must be a text like/],
    ['no description', { description: '' }, /description is missing/],
    ['no register', { register: undefined }, /register\(ctx\) is missing/],
    ['requires that is no list', { requires: 'mounter' }, /requires must be a list/],
    ['a guard that is no switch', { guard: 'yes' }, /guard must be true or false/],
    [
      'a schema that is none',
      { config: { schema: { depth: 1 } } },
      /config\.schema is not a Joi schema; import { Joi } from 'mountkeeper'/,
    ],
    [
      'a schema that is no table',
      { config: { schema: Joi.string() } },
      /config\.schema must be a Joi\.object/,
    ],
    [
      'share keys that are no table',
      { config: { schema: Joi.object({}), share: Joi.array() } },
      /config\.share must be a Joi\.object/,
    ],
    [
      "a key that is the host's",
      { config: { schema: Joi.object({ enabled: Joi.boolean() }) } },
      /must not have the key "enabled"/,
    ],
    [
      'a section with a dot',
      { config: { section: 'a.b', schema: Joi.object({}) } },
      /config\.section "a\.b" must be a name/,
    ],
  ] as const) {
    it(`with ${what} says what to mend`, () =>
      assert.match(manifestProblem({ ...good, ...change }, 'garden') ?? '', sentence));
  }

  it('with a schema of another Joi says which one to take', () => {
    const foreign = Object.assign(Object.create(Object.getPrototypeOf(Joi.object({}))) as object, {
      type: 'object',
    });
    Object.defineProperty(foreign, Symbol.for('@hapi/joi/schema'), { value: { version: '17.0.0' } });
    assert.match(
      manifestProblem({ ...good, config: { schema: foreign } }, 'garden') ?? '',
      /was made with another version of Joi; import { Joi } from 'mountkeeper'/,
    );
  });

  it("of a stranger's guard must stand in package.json too", () => {
    assert.match(
      thirdPartyProblem(small('lock', [], { guard: true }), { guard: false, shareKeys: [] }) ?? '',
      /"guard": true/,
    );
    assert.equal(
      thirdPartyProblem(small('lock', [], { guard: true }), { guard: true, shareKeys: [] }),
      undefined,
    );
  });

  it("of a stranger's section and share keys must stand in package.json too", () => {
    const plugin = small('garden', [], {
      config: { section: 'garden', schema: Joi.object({}), share: Joi.object({ depth: Joi.number() }) },
    });
    assert.match(thirdPartyProblem(plugin, { guard: false, shareKeys: [] }) ?? '', /"section": "garden"/);
    assert.match(
      thirdPartyProblem(plugin, { guard: false, section: 'garden', shareKeys: [] }) ?? '',
      /"shareKeys": \["depth"\]/,
    );
    assert.equal(
      thirdPartyProblem(plugin, { guard: false, section: 'garden', shareKeys: ['depth'] }),
      undefined,
    );
  });
});

describe('exports of an entry', () => {
  it('are the default one or the only plugin among them', () => {
    assert.equal(pickPlugin({ default: good, other: 1 }), good);
    assert.equal(pickPlugin({ garden: good, depth: 3 }), good);
    assert.throws(() => pickPlugin({ depth: 3 }), /exports no plugin; export the result of definePlugin/);
    assert.throws(() => pickPlugin({ a: good, b: { ...good } }), /exports several plugins/);
  });
});

describe('package.json of a stranger', () => {
  const read = (json: object) => readPackage(JSON.stringify({ type: 'module', ...json }));

  it('names the entry in any of the usual ways', () => {
    assert.equal(read({ exports: './a.js' }).entry, 'a.js');
    assert.equal(read({ exports: { '.': { types: './a.d.ts', import: './b.mjs' } } }).entry, 'b.mjs');
    assert.equal(read({ exports: { '.': { default: './c.js' } } }).entry, 'c.js');
    assert.equal(read({ main: 'dist/d.js' }).entry, 'dist/d.js');
    assert.equal(read({}).entry, 'index.js');
  });

  it('tells its version of the contract, its section and its share keys', () => {
    assert.throws(() => read({ mountkeeper: { apiVersion: 2 } }), /it is written for apiVersion 2/);
    const { guard, section, shareKeys } = read({
      mountkeeper: { apiVersion: 1, section: 'garden', shareKeys: ['depth', 4] },
    });
    assert.deepEqual([guard, section, shareKeys], [false, 'garden', ['depth']]);
  });

  it('with host packages among its dependencies is refused', () => {
    assert.throws(
      () => read({ dependencies: { mountkeeper: '1', joi: '17', '@hapi/boom': '10', lodash: '4' } }),
      /lists mountkeeper, joi, @hapi\/boom under dependencies; take them from Mountkeeper/,
    );
    assert.doesNotThrow(() =>
      read({
        dependencies: { lodash: '4' },
        peerDependencies: { mountkeeper: '*' },
        devDependencies: { joi: '18' },
      }),
    );
  });

  it('that is no ES module, no JSON or points outside is refused', () => {
    assert.throws(() => readPackage('{ "main": "index.js" }'), /lacks "type": "module"/);
    assert.doesNotThrow(() => readPackage('{ "main": "index.mjs" }'));
    assert.throws(() => read({ main: 'index.cjs' }), /is not an ES module/);
    assert.throws(() => read({ main: '../other/index.js' }), /outside the plugin's folder/);
    assert.throws(() => readPackage('{'), /not valid JSON/);
  });
});
