import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { Joi, filePath } from '../../../core/sdk/index.ts';
import { createSecrets } from '../../../core/config/secrets/secrets.ts';
import type { Clock, Processes } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';
import { NAS, PHOTOS, accepted, entry, openRoom, refused, sampleEntries } from './fixture.ts';
import type { Room } from './fixture.ts';

const rooms: Room[] = [];

function room(...options: Parameters<typeof openRoom>): Room {
  const opened = openRoom(...options);
  rooms.push(opened);
  return opened;
}

function closeRooms(): void {
  for (const opened of rooms.splice(0)) opened.close();
}

async function problemsOf(text: string, opened: Room = room()): Promise<string[]> {
  return refused(await opened.service.check(text, 'file')).problems.map(
    ({ message, line, column }) => `${line ?? '-'}:${column ?? '-'} ${message}`,
  );
}

function share(name: string, more = ''): string {
  return `[[shares]]\nname = ${JSON.stringify(name)}\nconnection = "nas"\n${more}\n`;
}

describe('a document that is no TOML', () => {
  afterEach(closeRooms);

  it('is refused at its line and column, without quoting what stands there', async () => {
    const check = refused(await room().service.check('[web]\nport = 1\npassword = "geheim\n', 'file'));
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
      assert.equal(refused(await room().service.check(text, 'http')).stage, 'parse', text.slice(0, 40));
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  it('is refused for more keys and values than anybody needs', async () => {
    for (const text of [
      '[[shares]]\n'.repeat(90_000),
      `${NAS}${Array.from({ length: 50_000 }, (_, index) => `k${index} = "********"\n`).join('')}`,
      `x = [${'1,'.repeat(400_000)}]`,
    ]) {
      assert.equal(
        refused(await room().service.check(text, 'http')).message,
        'the document holds more than 25000 keys and values',
      );
    }
  });

  it('may begin with a byte order mark', async () => {
    accepted(await room().service.check(`\uFEFF${PHOTOS}`, 'file'));
  });
});

describe('a document that breaks the schema', () => {
  afterEach(closeRooms);

  it('names unknown keys, what was meant, and where', async () => {
    assert.deepEqual(
      await problemsOf(
        `${PHOTOS}remote_pth = "/x"\n[webb]\nport = 1\n[web]\nprot = 1\n[plugins.warmup]\nenable = false\nzzzzzzzz = 1\n`,
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
      `${NAS}[supervisor]\npoll_interval = "10ms"\n[web]\nport = "8090"\n[log]\nlevel = "loud"\n[cache]\nmax_age = 5\nmax_size = 1979-05-27\n`,
    );
    assert.deepEqual(
      found.map((text) => text.split(' ')[1]),
      ['supervisor.poll_interval:', 'web.port', 'log.level', 'cache.max_age', 'cache.max_size'],
    );
    assert.match(found[0] ?? '', /"10ms" is too little; the least is "200ms"/);
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
      await room({ entries: () => entries }).service.check(`${NAS}[sample]\none = "b"\ntwo = "b"\n`, 'file'),
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
      const { problems, message } = refused(await room().service.check(text, 'http'));
      assert.ok(problems.length <= 200 && message.length < 4_000, String(message.length));
    }
  });

  it('does not repeat the value of a secret', async () => {
    const check = refused(
      await room().service.check(
        `${NAS}"bad key" = "geheim"\n[web]\npassword = { env = "X", file = "geheim" }\n`,
        'file',
      ),
    );
    assert.doesNotMatch(JSON.stringify(check), /geheim/);
  });

  it('must have connections', async () => {
    assert.deepEqual(await problemsOf(''), ['-:- connections is required']);
  });

  it('may not hold the mask as a secret, wherever it stands', async () => {
    const text = PHOTOS.replace('correct horse', '********').concat(
      '[web]\npassword = "********"\n[plugins.unknown]\ntoken = "********"\n',
    );
    const found = await problemsOf(text);
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

describe('checks across keys', () => {
  afterEach(closeRooms);

  it('find connections that do not exist and names that are taken', async () => {
    assert.deepEqual(
      await problemsOf(
        `${NAS}${NAS}${share('Straße')}${share('STRASSE')}${share('b').replace('"nas"', '"naas"')}`,
      ),
      [
        '9:1 there are two connections called "nas"',
        '20:1 the shares "Straße" and "STRASSE" differ in case only',
        '25:1 share "b" lies on the connection "naas", which does not exist; did you mean "nas"?',
      ],
    );
  });

  it('find mount points that are equal or lie in each other, among many', async () => {
    const found = await problemsOf(
      `${NAS}${share('a', 'mount_point = "/srv/a"')}${share('ab', 'mount_point = "/srv/ab"')}${share('c', 'mount_point = "/srv/a/x/../y/"')}${share('d', 'mount_point = "/srv/ab/"')}`,
    );
    assert.deepEqual(found, [
      '19:1 the shares "a" and "c" have one mount point inside the other: /srv/a/ and /srv/a/y/',
      '23:1 the shares "ab" and "d" have the same mount point: /srv/ab/ and /srv/ab/',
    ]);
  });

  it('find a mount point that another share has by default', async () => {
    const found = await problemsOf(`${NAS}${share('a')}${share('b', 'mount_point = "/mnt/mountkeeper/a"')}`);
    assert.match(found[0] ?? '', /the same mount point/);
  });

  it('keep what the daemon uses off the shares, and the shares out of its folders', async () => {
    const opened = room();
    const text = `${NAS}${share('a', `mount_point = "${opened.folder}"`)}${share('b', 'mount_point = "/c/x"')}${share('c', 'mount_point = "/var"')}[cache]\ndir = "/c"\n[log]\nfile = "/var/log/x.log"\n`;
    assert.deepEqual(
      (await problemsOf(text, opened)).map((problem) => problem.slice(problem.indexOf(') ') + 2)),
      [
        'holds the configuration file, which must not lie on the share',
        'lies inside cache.dir',
        'holds supervisor.state_dir, which must not lie on the share',
        'holds log.file, which must not lie on the share',
      ],
    );
  });

  it('find secrets that cannot be had, and name where they were sought', async () => {
    const opened = room({ env: { EMPTY: '' } });
    writeFileSync(join(opened.folder, 'blank'), '\n');
    const text = `${NAS}a = { env = "NOT_SET" }\nb = { env = "EMPTY" }\nc = { file = "no-such" }\nd = { credential = "nas" }\ne = { file = "blank" }\n`;
    assert.deepEqual(await problemsOf(text, opened), [
      '8:1 connections[0].options.a: the environment variable NOT_SET is not set',
      '9:1 connections[0].options.b: the environment variable EMPTY is empty',
      `10:1 connections[0].options.c: the file ${opened.folder}/no-such cannot be read: there is no such file`,
      '11:1 connections[0].options.d: the credential nas cannot be found: $CREDENTIALS_DIRECTORY is not set; pass it with LoadCredential= of systemd',
      `12:1 connections[0].options.e: the file ${opened.folder}/blank is empty`,
    ]);
  });

  it('do not touch a secret that lies on a share', async () => {
    const found = await problemsOf(
      `${NAS}key = { file = "/srv/a/key" }\n${share('a', 'mount_point = "/srv/a"')}`,
    );
    assert.deepEqual(found, ["8:1 connections[0].options.key: the secret's file must not lie on a share"]);
  });
});

describe('an accepted document', () => {
  afterEach(closeRooms);

  it('is complete, absolute and frozen all the way down', async () => {
    const opened = room({ env: { WORD: 'x' } });
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
    const { config } = accepted(await room({ entries: () => [] }).service.check(PHOTOS, 'file'));
    assert.equal(config.shares[0]?.mount_point, '');
  });

  it('keeps keys of plugins that are not there, with a warning', async () => {
    const { config, warnings } = accepted(
      await room().service.check(`${PHOTOS}[plugins.warm-up]\nrules = [{ at = 07:30:00 }]\n`, 'file'),
    );
    assert.deepEqual(Object.keys(config.plugins['warm-up'] as object), ['rules']);
    assert.deepEqual(warnings, [
      '[plugins.warm-up]: there is no plugin of that name; its keys are kept; did you mean "warmup"?',
    ]);
  });

  it('resolves paths of plugins against the folder of the file', async () => {
    const opened = room({
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

describe('what plugins say about a document', () => {
  afterEach(closeRooms);

  const schema = Joi.object({});

  it('is added with line and column', async () => {
    const check = async (): Promise<{ path: string; message: string }[]> => [
      { path: 'connections.nas.options.host', message: 'no such host' },
      { path: 'connections[0].options.pass', message: 'too short' },
    ];
    assert.deepEqual(
      await problemsOf(PHOTOS, room({ entries: () => [entry('mount', { section: 'm', schema, check })] })),
      ['1:1 no such host', '7:1 too short'],
    );
  });

  it('names the plugin that throws, rejects or changes the document', async () => {
    const entries = [
      entry('thrower', {
        section: 'a',
        schema,
        check: () => {
          throw new Error('oops');
        },
      }),
      entry('rejecter', { section: 'b', schema, check: () => Promise.reject(new Error('no rclone')) }),
      entry('meddler', {
        section: 'c',
        schema,
        check: (config) => {
          config.web.port = 1;
          return [];
        },
      }),
      entry('guard', {
        section: 'd',
        schema,
        checkUntrusted: () => {
          throw new Error('broken');
        },
      }),
    ];
    const opened = room({ entries: () => entries.slice(0, 3) });
    const found = await problemsOf(PHOTOS, opened);
    assert.equal(found[0], '-:- plugin thrower could not check the document: oops');
    assert.equal(found[1], '-:- plugin rejecter could not check the document: no rclone');
    assert.match(
      found[2] ?? '',
      /^-:- plugin meddler could not check the document: Cannot assign to read only property/,
    );
    const guarded = room({ entries: () => entries.slice(3) });
    await guarded.run(PHOTOS);
    assert.match(
      refused(await guarded.service.check(PHOTOS, 'http')).message,
      /plugin guard could not check the document: broken/,
    );
  });

  it('is a problem when it does not come within 10 s', async () => {
    const asked: number[] = [];
    const clock: Clock = {
      ...createClock(),
      sleep: (ms) => {
        asked.push(ms);
        return Promise.resolve();
      },
    };
    const services = { clock, secrets: createSecrets({ env: {} }), processes: {} as Processes };
    const never = entry('slow', {
      section: 's',
      schema,
      check: () =>
        new Promise<never>(() => {
          /* never */
        }),
    });
    assert.deepEqual(await problemsOf(PHOTOS, room({ entries: () => [never], services })), [
      '-:- plugin slow could not check the document: no answer within 10 s',
    ]);
    assert.deepEqual(asked, [10_000]);
  });

  it('leaves the document as it was when filling in fails half-way', async () => {
    const complete = (config: { web: { port: number } }): void => {
      config.web.port = 1;
      throw new Error('half-way');
    };
    const found = await problemsOf(
      PHOTOS,
      room({ entries: () => [entry('half', { section: 'h', schema, complete })] }),
    );
    assert.deepEqual(found, ['-:- plugin half could not fill in its defaults: half-way']);
  });
});

describe('a document that came over HTTP', () => {
  afterEach(closeRooms);

  it('may not change where code is loaded from; the file may', async () => {
    const opened = room();
    await opened.run(PHOTOS);
    const text = `${PHOTOS}[plugins]\ndirs = ["/tmp/evil"]\n`;
    assert.match(
      refused(await opened.service.check(text, 'http')).message,
      /plugins\.dirs cannot be changed over HTTP; it may stand in the configuration file.* \(line 13, column 1\)/,
    );
    await opened.run(text);
    accepted(await opened.service.check(`${text}\n[web]\nport = 1\n`, 'http'));
    refused(await opened.service.check(PHOTOS, 'http'));
  });

  it('runs nothing that it names before it is found harmless', async () => {
    const run: string[] = [];
    const runner = entry('runner', {
      section: 'runner',
      schema: Joi.object({ program: Joi.string().default('good').description('P.') }),
      check: (config) => {
        run.push((config as unknown as { runner: { program: string } }).runner.program);
        return [];
      },
      checkUntrusted: (next, current) =>
        JSON.stringify(next) === JSON.stringify(current)
          ? []
          : [{ path: 'runner.program', message: 'only in the file' }],
    });
    const opened = room({ entries: () => [runner] });
    await opened.run(PHOTOS);
    assert.equal(
      refused(await opened.service.check(`${PHOTOS}[runner]\nprogram = "evil"\n`, 'http')).message,
      'only in the file (line 13, column 1)',
    );
    assert.deepEqual(run, ['good']);
  });

  it('is shown to the plugins beside the running one', async () => {
    const seen: number[][] = [];
    const watcher = entry('watcher', {
      section: 'w',
      schema: Joi.object({}),
      checkUntrusted: (next, current) => {
        seen.push([next.web.port, current.web.port]);
        return [];
      },
    });
    const opened = room({ entries: () => [...sampleEntries(), watcher] });
    await opened.run(PHOTOS);
    await opened.service.check(`${PHOTOS}[web]\nport = 1\n`, 'http');
    await opened.service.check(`${PHOTOS}[web]\nport = 2\n`, 'file');
    assert.deepEqual(seen, [[1, 8090]]);
  });
});
