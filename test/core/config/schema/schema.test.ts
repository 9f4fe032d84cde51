import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { describe, it } from 'node:test';
import { Joi } from '../../../../core/sdk/index.ts';
import { listKeys } from '../../../../core/config/schema/key-tree.ts';
import { assemble, contributionProblems } from '../../../../core/config/schema/schema.ts';
import { dormantContribution } from '../../../../core/plugins/discovery/found.ts';
import { accepted, openRoom, PHOTOS, refused } from '../../../support/config/config-fixture.ts';
import { foldName, shareNameProblem } from '../../../../core/config/schema/share-name.ts';
import { entry, sampleEntries } from '../../../support/config/config-fixture.ts';

/** A second copy of Joi in this process, as a plugin that brings its own would have. */
function foreignJoi(): typeof Joi {
  const require = createRequire(import.meta.url);
  const entryFile = require.resolve('joi');
  const kept = Object.entries(require.cache).filter(([file]) => file.includes('/joi/'));
  for (const [file] of kept) delete require.cache[file];
  const copy = require(entryFile) as typeof Joi;
  for (const [file] of Object.entries(require.cache).filter(([name]) => name.includes('/joi/')))
    delete require.cache[file];
  for (const [file, module] of kept) require.cache[file] = module;
  return copy;
}

describe('two hundred plugins that are off', () => {
  it('cost what one does, and nothing when they are found again', () => {
    const found = (version: string) =>
      Array.from({ length: 200 }, (_, index) => ({
        ...entry(`off-${index}`, dormantContribution({ shareKeys: [] })),
        version: index === 7 ? version : '1.0.0',
      }));
    const { schema } = assemble(found('1.0.0'));
    assert.equal(schema.extract('plugins.off-0'), schema.extract('plugins.off-199'));
    const begun = process.cpuUsage();
    const again = assemble(found('2.0.0'));
    const { user, system } = process.cpuUsage(begun);
    assert.equal(again.schema.extract('plugins.off-7'), schema.extract('plugins.off-7'));
    // Of a hundred times as much before; the machine may have much else to do.
    assert.ok(user + system < 60_000, `${(user + system) / 1_000} ms of processor`);
    const [one, other] = [['bed'], ['bed', 'tree']].map((shareKeys) => dormantContribution({ shareKeys }));
    assert.deepEqual(
      [one, other].map((each) => Object.keys(each?.share?.describe().keys ?? {})),
      [['bed'], ['bed', 'tree']],
    );
  });
});

describe('the path on a remote', () => {
  it('does not climb, whoever writes it', async () => {
    const room = openRoom();
    try {
      const at = (path: string): string => `${PHOTOS}remote_path = '${path}'\n`;
      for (const origin of ['file', 'http'] as const) {
        for (const path of ['..', '../x', 'a/..', 'a/../../b', '/volume1/../etc', '..\\x', 'a\\..\\b'])
          assert.match(
            refused(await room.service.check(at(path), origin)).message,
            /remote_path holds "\.\."/,
            path,
          );
        for (const path of ['', '/volume1/photos', '..a', 'a..', 'a/.../b', '.', 'a/./b', 'a//b/'])
          accepted(await room.service.check(at(path), origin));
      }
    } finally {
      room.close();
    }
  });
});

describe('share names', () => {
  it('may be in any script, with inner spaces, up to 63 characters', () => {
    const good = [
      'a',
      '照片 2024',
      'Fotos-ä_1.2',
      'हिन्दी',
      '-x',
      '😀'.length === 2 ? '𠀀' : '',
      'x'.repeat(63),
      '𠀀'.repeat(63),
    ];
    assert.deepEqual(
      good.map(shareNameProblem),
      good.map(() => undefined),
    );
  });

  it('are refused when no folder, no URL or no SMB share could have them', () => {
    const bad = [
      '',
      'x'.repeat(64),
      ' a',
      'a ',
      'a/b',
      'a\\b',
      '.',
      '..',
      '.a',
      'a.',
      'a\u00a0b',
      'a\tb',
      'a\0',
      'ipc$',
      'GLOBAL',
      'globals',
      'Glo bal',
      'Homes',
      'printers',
      '📷',
      'e\u0301',
    ];
    assert.deepEqual(
      bad.filter((name) => shareNameProblem(name) === undefined),
      [],
    );
  });

  it('are the same when they differ in case only, in any script', () => {
    assert.equal(foldName('STRASSE'), foldName('straße'));
    assert.equal(foldName('ΣΊΣΥΦΟΣ'), foldName('σίσυφος'));
    assert.notEqual(foldName('fotos'), foldName('photos'));
  });
});

describe('the assembled schema', () => {
  it('fills in every default of the core and of all plugins', () => {
    const value = assemble(sampleEntries()).schema.validate({ connections: [] }).value as Record<
      string,
      unknown
    >;
    assert.deepEqual(value['web'], {
      listen: '127.0.0.1',
      port: 8090,
      hostnames: [],
      trusted_proxies: [],
      username: 'admin',
      password: '',
    });
    assert.deepEqual(value['shares'], []);
    assert.deepEqual(value['plugins'], {
      dirs: [],
      install_from_page: false,
      auth: { enabled: true },
      mount: { enabled: true },
      smb: { enabled: true },
      warmup: { enabled: true },
    });
  });

  it('documents every key of the core with description and tier', () => {
    const keys = listKeys(assemble([]).root);
    assert.deepEqual(
      keys.filter((key) => key.description === '').map((key) => key.path),
      [],
    );
    const tiers = Object.fromEntries(keys.map((key) => [key.path, key.tier]));
    assert.equal(tiers['shares[].protocols'], 'protocol');
    assert.equal(tiers['supervisor.state_dir'], 'restart');
    assert.equal(tiers['supervisor.stop_timeout'], 'live');
    assert.equal(tiers['cache.dir'], 'global');
    assert.equal(keys.find((key) => key.path === 'web.port')?.type, 'integer');
  });

  it('gives each key the nearest tier of its own plugin, and marks secrets', () => {
    const keys = new Map(listKeys(assemble(sampleEntries()).root).map((key) => [key.path, key]));
    assert.deepEqual(
      [
        keys.get('smb.users[].password')?.tier,
        keys.get('smb.users[].password')?.secret,
        keys.get('smb.users[].password')?.owner,
      ],
      ['protocol', true, 'smb'],
    );
    assert.equal(keys.get('shares[].dir_refresh_interval')?.tier, 'live');
    assert.equal(keys.get('web.password')?.owner, 'auth');
  });

  it('takes keys of a plugin without a section from its own table', () => {
    const plain = entry(
      'lights',
      { schema: Joi.object({ colour: Joi.string().default('red').description('Colour.') }) },
      { enabledByDefault: false },
    );
    const value = assemble([plain]).schema.validate({ connections: [] }).value as { plugins: unknown };
    assert.deepEqual(value.plugins, {
      dirs: [],
      install_from_page: false,
      lights: { enabled: false, colour: 'red' },
    });
  });

  it('makes anew what has changed alone', () => {
    const entries = sampleEntries();
    const former = assemble(entries).root.children;
    const changed = entry('garden', {
      schema: Joi.object({ beds: Joi.number().default(1).description('Beds.') }).meta({ tier: 'live' }),
    });
    const { children } = assemble([...entries, changed]).root;
    for (const name of ['web', 'mount', 'supervisor', 'cache'])
      assert.ok(former.has(name) && children.get(name) === former.get(name), name);
    const [tables, formerTables] = [children, former].map((one) => one.get('plugins')?.children);
    assert.equal(tables?.get('auth'), formerTables?.get('auth'));
    assert.deepEqual([...(tables?.get('garden')?.children.keys() ?? [])], ['enabled', 'log_level', 'beds']);
    const again = entry('garden', changed.contribution, { thirdParty: true, enabledByDefault: false });
    const { children: later } = assemble([...entries, again]).root;
    assert.equal(later.get('plugins')?.children.get('garden')?.children.has('isolation'), true);
  });

  it('leaves out a contribution whose key another plugin has, naming both, and keeps the rest', () => {
    const rival = entry('rival', { section: 'web', schema: Joi.object({ password: Joi.string() }) });
    const assembly = assemble([...sampleEntries(), rival]);
    assert.deepEqual(assembly.rejected, [
      { owner: 'rival', reason: 'plugin rival and plugin auth both declare the key web.password' },
    ]);
    assert.deepEqual(
      assembly.entries.map((each) => each.owner),
      ['auth', 'mount', 'smb', 'warmup'],
    );
    assert.equal(contributionProblems([rival]).get(rival.owner), undefined);
  });

  it('leaves out a plugin that redeclares a key of the core or of a share', () => {
    const reasons = [
      entry('a', { section: 'web', schema: Joi.object({ port: Joi.number() }) }),
      entry('b', { section: 'b', schema: Joi.object({}), share: Joi.object({ mount_point: Joi.string() }) }),
      entry('c', { schema: Joi.object({ enabled: Joi.boolean() }) }),
      entry('dirs', { schema: Joi.object({}) }),
      entry('d', { section: 'shares', schema: Joi.object({}) }),
      entry('e', { section: 'plugins', schema: Joi.object({}) }),
    ].map((each) => contributionProblems([each]).get(each.owner));
    assert.equal(reasons[0], 'plugin a and the core both declare the key web.port');
    assert.equal(reasons[1], 'plugin b and the core both declare the key shares[].mount_point');
    assert.equal(reasons[2], 'plugin c and the core both declare the key plugins.c.enabled');
    assert.ok(reasons.every((reason) => reason !== undefined));
  });

  it('refuses a schema that another copy of Joi made', () => {
    const other = foreignJoi();
    assert.notEqual(other, Joi);
    const reason = contributionProblems([
      entry('stranger', { section: 'stranger', schema: other.object({}) }),
    ]).get('stranger');
    assert.match(reason ?? '', /another Joi; import Joi from 'mountkeeper'/);
    for (const schema of [undefined, {}, 5, Joi.string()]) {
      assert.notEqual(
        contributionProblems([entry('x', { section: 'x', schema: schema as never })]).get('x'),
        undefined,
      );
    }
  });

  it('leaves out a plugin whose mere discovery would make a document invalid', () => {
    const needy = [
      entry('a', { section: 'a', schema: Joi.object({ token: Joi.string().required() }) }),
      entry('b', {
        section: 'b',
        schema: Joi.object({}),
        share: Joi.object({ colour: Joi.string().required() }),
      }),
    ];
    const { rejected, schema } = assemble(needy);
    assert.deepEqual(
      rejected.map(({ reason }) => /every key needs a default.*is required$/.test(reason)),
      [true, true],
    );
    assert.equal(
      schema.validate({ connections: [], shares: [{ name: 'a', connection: 'b' }] }).error,
      undefined,
    );
  });

  it("leaves out a third party's that stands in a section of somebody else, on or off", () => {
    const stranger = (owner: string, section: string, schema = Joi.object({ copy: Joi.any() })) =>
      entry(owner, { section, schema }, { thirdParty: true, enabledByDefault: false });
    const open = Joi.object().unknown();
    const asked = [
      stranger('reads', 'web', Joi.object({ copy: Joi.any().default(Joi.ref('password')) })),
      stranger('takes', 'web', Joi.object({ copy: Joi.any() }).rename('password', 'copy')),
      stranger('opens', 'cache', open),
      stranger('joins', 'smb'),
      stranger('garden', 'garden'),
      stranger('second', 'garden'),
    ];
    const { rejected, schema } = assemble([...sampleEntries(), ...asked]);
    assert.deepEqual(
      rejected.map(({ owner }) => owner),
      ['reads', 'takes', 'opens', 'joins', 'second'],
    );
    assert.equal(
      rejected[0]?.reason,
      "plugin reads: the section [web] is not its own, as a third party's has to be",
    );
    const document = { connections: [], web: { password: 'p' }, garden: { copy: 1 } };
    const { value, error } = schema.validate(document) as Joi.ValidationResult<typeof document>;
    assert.equal(error, undefined);
    assert.deepEqual([value?.web.password, Object.keys(value?.web ?? {}).includes('copy')], ['p', false]);
    assert.match(schema.validate({ ...document, cache: { dri: '/x' } }).error?.message ?? '', /dri/);
  });

  it('keeps rules between the keys of one plugin', () => {
    const paired = entry('paired', {
      section: 'web',
      schema: Joi.object({ a: Joi.number(), b: Joi.number() }).and('a', 'b'),
    });
    const { schema } = assemble([...sampleEntries(), paired]);
    assert.match(
      schema.validate({ connections: [], web: { a: 1 } }).error?.message ?? '',
      /without its required peers/,
    );
  });
});
