/** What third parties' plugins say about the configuration: it is theirs, or nobody hears it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { Joi } from '../../../core/sdk/index.ts';
import type { Config, ConfigContribution, LoadedConfig } from '../../../core/contract/config.ts';
import { createSecrets } from '../../../core/config/secrets/secrets.ts';
import type { Clock, Processes } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';
import {
  PHOTOS,
  accepted,
  entry,
  openRoom,
  refused,
  sampleEntries,
} from '../../support/config/config-fixture.ts';
import type { Room } from '../../support/config/config-fixture.ts';

const rooms: Room[] = [];

function room(...options: Parameters<typeof openRoom>): Room {
  const opened = openRoom(...options);
  rooms.push(opened);
  return opened;
}

describe("a third party's plugin and the document", () => {
  afterEach(() => {
    for (const opened of rooms.splice(0)) opened.close();
  });

  const keys = Joi.object({
    colour: Joi.string().default('blue').description('Colour.'),
    shade: Joi.string().example('x').description('Shade.'),
  });
  const stranger = (contribution: Partial<ConfigContribution>): Room =>
    room({
      entries: () => [
        ...sampleEntries(),
        entry('odd', { schema: keys, ...contribution } as ConfigContribution, {
          thirdParty: true,
          enabledByDefault: false,
        }),
      ],
    });
  const ON = `${PHOTOS}[plugins.odd]\nenabled = true\n`;

  it('is asked while it is on alone', async () => {
    let asked = 0;
    const opened = stranger({
      complete: () => {
        asked += 1;
      },
      check: () => {
        asked += 1;
        return [];
      },
    });
    accepted(await opened.service.check(`${PHOTOS}[plugins.odd]\ncolour = "red"\n`, 'file'));
    assert.equal(asked, 0);
    accepted(await opened.service.check(ON, 'file'));
    assert.equal(asked, 2);
  });

  it('fills in its own keys and changes no others', async () => {
    const complete = (config: Config): void => {
      (config.plugins['odd'] as { shade: string }).shade = 'dark';
      config.shares = [];
      config.connections.length = 0;
      Object.assign(config, { web: null, cache: { dir: '/evil' } });
    };
    const { config } = accepted(await stranger({ complete }).service.check(ON, 'file'));
    assert.deepEqual(
      config.shares.map(({ name, mount_point: at }) => [name, at]),
      [['photos', '/mnt/mountkeeper/photos']],
    );
    assert.deepEqual([config.connections.length, config.web.port], [1, 8090]);
    assert.deepEqual(config.plugins['odd'], {
      enabled: true,
      isolation: 'own',
      colour: 'blue',
      shade: 'dark',
    });
  });

  const clock: Clock = {
    ...createClock(),
    after: (_ms, fn) => {
      setImmediate(fn);
      return () => undefined;
    },
  };
  const services = { clock, secrets: createSecrets({ env: {} }), processes: {} as Processes };
  for (const [what, contribution, reason] of [
    [
      'throws while it fills in',
      {
        complete: () => {
          throw new Error('defect');
        },
      },
      'could not fill in its defaults: defect',
    ],
    [
      'throws nothing while it fills in',
      {
        complete: () => {
          throw undefined;
        },
      },
      'could not fill in its defaults: it threw undefined, which is no error',
    ],
    [
      'throws while it checks',
      {
        check: () => {
          throw new Error('defect');
        },
      },
      'could not check the document: defect',
    ],
    [
      'throws nothing while it checks',
      { check: () => Promise.reject() as never },
      'could not check the document: it threw undefined, which is no error',
    ],
    [
      'throws what is no text',
      {
        check: () => {
          throw Object.create(null);
        },
      },
      'could not check the document: it threw {}, which is no error',
    ],
    [
      'never answers',
      {
        check: () =>
          new Promise<never>(() => {
            /* never */
          }),
      },
      'could not check the document: no answer within 3 s',
    ],
    [
      'answers nonsense',
      { check: () => [null] as never },
      'could not check the document: its answer holds what is no problem: each needs a message',
    ],
  ] as const) {
    it(`makes none wrong that ${what}: it is warned of`, async () => {
      const odd = entry('odd', { schema: keys, ...contribution } as ConfigContribution, {
        thirdParty: true,
        enabledByDefault: false,
      });
      const { warnings, config } = accepted(
        await room({ entries: () => [...sampleEntries(), odd], services }).service.check(ON, 'file'),
      );
      assert.deepEqual(warnings, [`plugin odd ${reason}`]);
      assert.equal(config.shares.length, 1);
    });
  }

  it('refuses a change also by throwing nothing', async () => {
    const opened = stranger({
      checkUntrusted: () => {
        throw undefined;
      },
    });
    const loaded = accepted(await opened.service.check(ON, 'file'));
    opened.service.commit(loaded);
    const { message } = refused(await opened.service.check(ON.replace('photos', 'pictures'), 'http'));
    assert.match(message, /plugin odd could not check the document: it threw undefined, which is no error/);
  });

  const opinions = (said: unknown): Room => stranger({ check: () => said as never });
  /** The document that is in force when the plugin begins to refuse. */
  async function running(opened: Room): Promise<Room> {
    const { loaded } = (await opened.service.check(PHOTOS, 'file')) as never as { loaded: LoadedConfig };
    opened.service.commit(loaded);
    return opened;
  }

  it('is refused by what it finds wrong', async () => {
    const opened = await running(
      opinions([{ path: 'plugins.odd.colour', message: 'there is no such colour' }]),
    );
    assert.match(refused(await opened.service.check(ON, 'file')).message, /there is no such colour/);
  });

  it('refuses a change by name, and says where, however it names the place', async () => {
    const opened = await running(opinions([{ path: ['web', 'port'], message: 'is not to my taste' }]));
    const { problems, message } = refused(await opened.service.check(ON, 'file'));
    assert.deepEqual(
      problems.map(({ path, message: said }) => [path, said]),
      [['web.port', 'plugin odd: is not to my taste']],
    );
    assert.match(message, /plugin odd: is not to my taste/);
  });

  it('keeps no daemon from its start, but refuses the file to who checks it', async () => {
    const opened = opinions([{ path: ['shares', 0, 'name'], message: 'is not to my taste' }]);
    writeFileSync(opened.file, ON, { mode: 0o600 });
    const { warnings, config } = accepted(await opened.service.loadFile());
    assert.deepEqual(warnings, ['plugin odd: is not to my taste']);
    assert.equal(config.shares.length, 1);
    const { problems } = refused(await opened.service.loadFile({ isStrict: true }));
    assert.deepEqual(
      problems.map(({ path }) => path),
      ['shares[0].name'],
    );
  });

  it('keeps no daemon from its start by what it takes, nor a later change, and gets no wrong keys anew', async () => {
    const opened = stranger({ schema: Joi.object({ colour: Joi.forbidden() }) });
    const text = `${ON}colour = "red"\n`;
    writeFileSync(opened.file, text, { mode: 0o600 });
    assert.match(refused(await opened.service.loadFile({ isStrict: true })).message, /colour/);
    assert.match(refused(await opened.service.check(text, 'file')).message, /colour/);
    const loaded = accepted(await opened.service.loadFile());
    assert.match(loaded.unfit?.get('odd') ?? '', /\[plugins\.odd\] does not fit .*colour is not allowed/);
    assert.deepEqual([loaded.config.shares.length, loaded.warnings.length], [1, 1]);
    opened.service.commit(loaded);
    for (const origin of ['file', 'http'] as const) {
      const next = accepted(await opened.service.check(text.replace('"photos"', '"pictures"'), origin));
      assert.ok(next.unfit?.has('odd'), origin);
      assert.match(
        refused(await opened.service.check(text.replace('red', 'blue'), origin)).message,
        /colour/,
      );
    }
    const mended = accepted(await opened.service.check(ON, 'file'));
    assert.equal(mended.unfit, undefined);
  });

  it('keeps no daemon from its start by a secret that its schema names and the file does not', async () => {
    const schema = Joi.object({ token: Joi.any().default({ env: 'NOWHERE' }) });
    accepted(await stranger({ schema }).service.check(ON, 'file'));
    const written = `${ON}token = { env = "NOWHERE" }\n`;
    assert.match(
      refused(await stranger({ schema }).service.check(written, 'file')).message,
      /token.*NOWHERE/,
    );
  });

  it('has twenty sentences at the most, each of one line', async () => {
    const loud = { message: `\u001b[31mbad\u001b[0m\n\u202e${'x'.repeat(1_000)}` };
    const opened = await running(opinions(Array.from({ length: 100_000 }, () => loud)));
    const { problems } = refused(await opened.service.check(ON, 'file'));
    assert.equal(problems.length, 20);
    for (const { message } of problems) assert.match(message, /^plugin odd: bad x{295}…$/u);
  });

  it('is warned of where its place is none', async () => {
    const opened = await running(opinions([{ path: { web: 'port' }, message: 'is not to my taste' }]));
    assert.deepEqual(accepted(await opened.service.check(ON, 'file')).warnings, [
      'plugin odd could not check the document: its answer holds what is no problem: its path is no text',
    ]);
  });
});
