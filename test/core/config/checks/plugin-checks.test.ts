/** What plugins say about a document, from the file and over HTTP. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Joi } from '../../../../core/sdk/index.ts';
import { createSecrets } from '../../../../core/config/secrets/secrets.ts';
import type { Clock, Processes } from '../../../../core/contract/platform.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import {
  PHOTOS,
  OpenedRooms,
  accepted,
  entry,
  problemsOf,
  refused,
  sampleEntries,
} from '../../../support/config/config-fixture.ts';

const rooms = new OpenedRooms();

describe('what plugins say about a document', () => {
  afterEach(() => rooms.close());

  const schema = Joi.object({});

  it('is added with line and column', async () => {
    const check = async (): Promise<{ path: string; message: string }[]> => [
      { path: 'connections.nas.options.host', message: 'no such host' },
      { path: 'connections[0].options.pass', message: 'too short' },
    ];
    assert.deepEqual(
      await problemsOf(
        PHOTOS,
        rooms.open({ entries: () => [entry('mount', { section: 'm', schema, check })] }),
      ),
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
    const opened = rooms.open({ entries: () => entries.slice(0, 3) });
    const found = await problemsOf(PHOTOS, opened);
    assert.equal(found[0], '-:- plugin thrower could not check the document: oops');
    assert.equal(found[1], '-:- plugin rejecter could not check the document: no rclone');
    assert.match(
      found[2] ?? '',
      /^-:- plugin meddler could not check the document: Cannot assign to read only property/,
    );
    const guarded = rooms.open({ entries: () => entries.slice(3) });
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
      after: (ms, fn) => {
        asked.push(ms);
        setImmediate(fn);
        return () => undefined;
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
    assert.deepEqual(await problemsOf(PHOTOS, rooms.open({ entries: () => [never], services })), [
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
      rooms.open({ entries: () => [entry('half', { section: 'h', schema, complete })] }),
    );
    assert.deepEqual(found, ['-:- plugin half could not fill in its defaults: half-way']);
  });
});

describe('a document that came over HTTP', () => {
  afterEach(() => rooms.close());

  it('may not change where code is loaded from; the file may', async () => {
    const opened = rooms.open();
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
    const opened = rooms.open({ entries: () => [runner] });
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
    const opened = rooms.open({ entries: () => [...sampleEntries(), watcher] });
    await opened.run(PHOTOS);
    await opened.service.check(`${PHOTOS}[web]\nport = 1\n`, 'http');
    await opened.service.check(`${PHOTOS}[web]\nport = 2\n`, 'file');
    assert.deepEqual(seen, [[1, 8090]]);
  });

  it('may give the path of a problem in parts, of whatever name', async () => {
    const picky = entry('picky', {
      schema: Joi.object({}),
      check: () => [{ message: 'no', path: ['groups', 'my team', 0] } as never],
    });
    const opened = rooms.open({ entries: () => [...sampleEntries(), picky] });
    const { problems } = refused(await opened.service.check(PHOTOS, 'file'));
    assert.equal(problems[0]?.path, 'groups."my team"[0]');
  });
});
