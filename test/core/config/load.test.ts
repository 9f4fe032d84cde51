/** Documents that are no TOML, break the schema, or are accepted. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { Joi, filePath } from '../../../core/sdk/index.ts';
import {
  NAS,
  PHOTOS,
  OpenedRooms,
  accepted,
  entry,
  problemsOf,
  refused,
} from '../../support/config/config-fixture.ts';

const rooms = new OpenedRooms();

describe('a document that is no TOML', () => {
  afterEach(() => rooms.close());

  it('is refused at its line and column, without quoting what stands there', async () => {
    const check = refused(await rooms.open().service.check('[web]\nport = 1\npassword = "geheim\n', 'file'));
    assert.equal(check.stage, 'parse');
    assert.deepEqual([check.problems[0]?.line, typeof check.problems[0]?.column], [3, 'number']);
    assert.match(check.message, /\(line 3, column \d+\)$/);
    assert.doesNotMatch(check.message, /geheim/);
  });

  it('is refused for unsafe keys, lossy numbers, half characters, depth and size', async () => {
    const texts = [
      '[__proto__]\nx = 1',
      'constructor = 1',
      'x = 99999999999999999999',
      'x = "\ud800"',
      `x = ${'['.repeat(5000)}`,
      `x${'.x'.repeat(50_000)} = 1`,
      `# ${'x'.repeat(1_100_000)}`,
    ];
    for (const text of texts)
      assert.equal(refused(await rooms.open().service.check(text, 'http')).stage, 'parse', text.slice(0, 40));
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  it('is refused for more keys and values than anybody needs', async () => {
    for (const text of [
      '[[shares]]\n'.repeat(90_000),
      `${NAS}${Array.from({ length: 50_000 }, (_, index) => `k${index} = "********"\n`).join('')}`,
      `x = [${'1,'.repeat(400_000)}]`,
    ]) {
      assert.equal(
        refused(await rooms.open().service.check(text, 'http')).message,
        'the document holds more than 25000 keys and values',
      );
    }
  });

  it('may begin with a byte order mark', async () => {
    accepted(await rooms.open().service.check(`\uFEFF${PHOTOS}`, 'file'));
  });
});

describe('a document that breaks the schema', () => {
  afterEach(() => rooms.close());

  it('names unknown keys, what was meant, and where', async () => {
    assert.deepEqual(
      await problemsOf(
        `${PHOTOS}remote_pth = "/x"\n[webb]\nport = 1\n[web]\nprot = 1\n[plugins.warmup]\n` +
          'enable = false\nzzzzzzzz = 1\n',
        rooms.open(),
      ),
      [
        '12:1 unknown key "remote_pth" in shares[0]; did you mean "remote_path"?',
        '13:1 unknown key "webb" in the document; did you mean "web"?',
        '16:1 unknown key "prot" in web; did you mean "port"?',
        '18:1 unknown key "enable" in plugins.warmup; did you mean "enabled"?',
        '19:1 unknown key "zzzzzzzz" in plugins.warmup',
      ],
    );
  });

  it('is told everything at once, in the order of the text', async () => {
    const found = await problemsOf(
      `${NAS}[supervisor]\npoll_interval = "10ms"\n[web]\nport = "8090"\n[log]\n` +
        'level = "loud"\n[cache]\nmax_age = 5\nmax_size = 1979-05-27\n',
      rooms.open(),
    );
    assert.deepEqual(
      found.map((text) => text.split(' ')[1]),
      ['supervisor.poll_interval:', 'web.port', 'log.level', 'cache.max_age', 'cache.max_size'],
    );
    assert.match(found[0] ?? '', /"10ms" is too little; the least is "200ms"/);
  });

  it('is told in good English how many items and characters there may be', async () => {
    const lamps = entry('lamps', {
      section: 'lamps',
      schema: Joi.object({
        beds: Joi.array().items(Joi.string().min(3).max(4)).min(1).max(2).optional(),
        seats: Joi.array().min(2).optional(),
        signs: Joi.array().items(Joi.string().max(1)).max(1).optional(),
      }),
    });
    const room = rooms.open({ entries: () => [lamps] });
    const table = 'beds = []\nseats = [1]\nsigns = ["ab", "c"]\n';
    assert.deepEqual(await problemsOf(`${NAS}[lamps]\n${table}`, room), [
      '9:1 lamps.beds must contain at least 1 item',
      '10:1 lamps.seats must contain at least 2 items',
      '11:1 lamps.signs must contain at most 1 item',
      '11:10 lamps.signs[0] must be at most 1 character long',
    ]);
    const long = 'beds = ["ab", "abcde", "abc"]\n';
    assert.deepEqual(await problemsOf(`${NAS}[lamps]\n${long}`, room), [
      '9:1 lamps.beds must contain at most 2 items',
      '9:9 lamps.beds[0] must be at least 3 characters long',
      '9:15 lamps.beds[1] must be at most 4 characters long',
    ]);
  });

  it('says once what two rules of a key say alike', async () => {
    const twice = Joi.string().pattern(/^a/).min(3).messages({
      'string.pattern.base': '{{#label}} must be a name',
      'string.min': '{{#label}} must be a name',
    });
    const entries = [
      entry('sample', {
        section: 'sample',
        schema: Joi.object({ one: twice, two: twice }).meta({ tier: 'live' }),
      }),
    ];
    const check = refused(
      await rooms
        .open({ entries: () => entries })
        .service.check(`${NAS}[sample]\none = "b"\ntwo = "b"\n`, 'file'),
    );
    assert.deepEqual(
      check.problems.map(({ message }) => message),
      ['sample.one must be a name', 'sample.two must be a name'],
    );
  });

  it('is answered soon, and shortly, however much is wrong with it', async () => {
    const hostile = [
      '[[shares]]\n'.repeat(20_000),
      `[plugins.x]\nodd = "${'key'.repeat(300_000)}"\n`,
      `${Array.from({ length: 20_000 }, (_, index) => `k${index} = 1\n`).join('')}`,
    ];
    for (const text of hostile) {
      const { problems, message } = refused(await rooms.open().service.check(text, 'http'));
      assert.ok(problems.length <= 200 && message.length < 4_000, String(message.length));
    }
  });

  it('does not repeat the value of a secret', async () => {
    const check = refused(
      await rooms
        .open()
        .service.check(
          `${NAS}"bad key" = "geheim"\n[web]\npassword = { env = "X", file = "geheim" }\n`,
          'file',
        ),
    );
    assert.doesNotMatch(JSON.stringify(check), /geheim/);
  });

  it('must have connections', async () => {
    assert.deepEqual(await problemsOf('', rooms.open()), ['-:- connections is required']);
  });

  it('may not hold the mask as a secret, wherever it stands', async () => {
    const text = PHOTOS.replace('correct horse', '********').concat(
      '[web]\npassword = "********"\n[plugins.unknown]\ntoken = "********"\n',
    );
    const found = await problemsOf(text, rooms.open());
    assert.deepEqual(
      found.map((problem) => problem.slice(0, problem.indexOf(' in place'))),
      [
        '7:1 connections[0].options.pass holds the mask "********"',
        '13:1 web.password holds the mask "********"',
        '15:1 plugins.unknown.token holds the mask "********"',
      ],
    );
  });
});

describe('an accepted document', () => {
  afterEach(() => rooms.close());

  it('is complete, absolute and frozen all the way down', async () => {
    const opened = rooms.open({ env: { WORD: 'x' } });
    const { config, document, text } = accepted(
      await opened.service.check(
        `${PHOTOS}[log]\nfile = "a/b.log"\n[plugins]\ndirs = ["more"]\n[web]\npassword = { env = "WORD" }\n`,
        'file',
      ),
    );
    assert.equal(config.log.file, join(opened.folder, 'a/b.log'));
    assert.deepEqual(config.plugins.dirs, [join(opened.folder, 'more')]);
    assert.equal(config.shares[0]?.mount_point, '/mnt/mountkeeper/photos');
    assert.deepEqual((config.web as unknown as { password: unknown }).password, { env: 'WORD' });
    assert.deepEqual(document['log'], { file: 'a/b.log' });
    assert.ok(text.startsWith(NAS));
    assert.ok(Object.isFrozen(config.shares[0]?.protocols) && Object.isFrozen(document['log']));
    assert.throws(() => {
      config.shares.push(config.shares[0] as never);
    });
  });

  it('has an empty mount point when no plugin knows one', async () => {
    const { config } = accepted(await rooms.open({ entries: () => [] }).service.check(PHOTOS, 'file'));
    assert.equal(config.shares[0]?.mount_point, '');
  });

  it('keeps keys of plugins that are not there, with a warning', async () => {
    const { config, warnings } = accepted(
      await rooms.open().service.check(`${PHOTOS}[plugins.warm-up]\nrules = [{ at = 07:30:00 }]\n`, 'file'),
    );
    assert.deepEqual(Object.keys(config.plugins['warm-up'] as object), ['rules']);
    assert.deepEqual(warnings, [
      '[plugins.warm-up]: there is no plugin of that name; its keys are kept; did you mean "warmup"?',
    ]);
  });

  it('resolves paths of plugins against the folder of the file', async () => {
    const opened = rooms.open({
      entries: () => [
        entry('keys', {
          section: 'keys',
          schema: Joi.object({ folder: filePath().default('k'), all: Joi.array().items(filePath()) }),
        }),
      ],
    });
    const { config } = accepted(await opened.service.check(`${NAS}[keys]\nall = ["x", "/y"]\n`, 'file'));
    assert.deepEqual((config as unknown as { keys: unknown }).keys, {
      folder: join(opened.folder, 'k'),
      all: [join(opened.folder, 'x'), '/y'],
    });
  });
});
