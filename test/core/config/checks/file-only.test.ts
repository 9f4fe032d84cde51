import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { Joi, secret } from '../../../../core/sdk/index.ts';
import {
  accepted,
  entry,
  openRoom,
  PHOTOS,
  refused,
  sampleEntries,
} from '../../../support/config/config-fixture.ts';
import type { Room } from '../../../support/config/config-fixture.ts';

const text = (description: string) => Joi.string().allow('').default('').description(description);

/** A stranger's plugin that marks its keys; whether it is on is the file's matter, too. */
const stranger = () =>
  entry(
    'stranger',
    {
      schema: Joi.object({
        program: text('What it runs.').meta({ fileOnly: true }),
        colour: text('A colour.'),
        risky: Joi.boolean()
          .default(false)
          .description('Off unless the file says so.')
          .meta({ fileOnly: 'but-default' }),
        guarded: Joi.object({ inner: text('Below a mark.') })
          .default()
          .meta({ fileOnly: true }),
        jobs: Joi.array()
          .default([])
          .items(
            Joi.object({
              name: Joi.string().required(),
              script: text('Script.').meta({ fileOnly: true }),
              token: secret().default(''),
            }),
          )
          .description('Jobs.'),
      }).meta({ tier: 'live' }),
    },
    { thirdParty: true, enabledByDefault: false },
  );

describe('over HTTP', () => {
  const rooms: Room[] = [];
  const room = async (running = PHOTOS): Promise<Room> => {
    const opened = openRoom({
      entries: () => [...sampleEntries(), stranger()],
      env: { WORD: 'x', OTHER: 'y' },
    });
    rooms.push(opened);
    await opened.run(running);
    return opened;
  };
  after(() =>
    rooms.forEach((one) => {
      one.close();
    }),
  );

  /**
   * Paths that are refused when `next` comes over HTTP while `running` runs; the file itself may always say
   * it.
   */
  async function refusals(next: string, running = PHOTOS): Promise<readonly (string | undefined)[]> {
    const opened = await room(running);
    accepted(await opened.service.check(next, 'file'));
    const check = await opened.service.check(next, 'http');
    if (check.ok) return [];
    assert.ok(
      check.problems.every(({ message }) =>
        message.endsWith('; it may stand in the configuration file, written by somebody with a shell'),
      ),
      check.message,
    );
    return check.problems.map(({ path }) => path);
  }
  const own = (keys: string, running = ''): Promise<readonly (string | undefined)[]> =>
    refusals(
      `${PHOTOS}[plugins.stranger]\n${keys}`,
      running === '' ? PHOTOS : `${PHOTOS}[plugins.stranger]\n${running}`,
    );

  it("the core's folders, files and places of code stay as they are", async () => {
    for (const [key, section, value] of [
      ['dir', 'cache', '"/x"'],
      ['state_dir', 'supervisor', '"/x"'],
      ['file', 'log', '"/x"'],
      ['dirs', 'plugins', '["/x"]'],
      ['install_from_page', 'plugins', 'true'],
    ]) {
      const said = `${PHOTOS}[${section}]\n${key} = ${value}\n`;
      assert.deepEqual(await refusals(said), [`${section}.${key}`]);
      assert.deepEqual(await refusals(said, said), [], 'as the file says');
      assert.deepEqual(await refusals(PHOTOS, said), [`${section}.${key}`], 'nor are they left out');
    }
  });

  it('so do keys that a plugin marks, and all below a mark', async () => {
    assert.deepEqual(await own('program = "/x"'), ['plugins.stranger.program']);
    assert.deepEqual(await own('program = ""', 'program = "/x"'), ['plugins.stranger.program']);
    assert.deepEqual(await own('guarded = { inner = "x" }'), ['plugins.stranger.guarded']);
    assert.deepEqual(await own('colour = "red"\nprogram = "/x"', 'program = "/x"'), []);
  });

  it('what may go back to its default, may', async () => {
    assert.deepEqual(await own('risky = true'), ['plugins.stranger.risky']);
    assert.deepEqual(await own('risky = false', 'risky = true'), []);
    assert.deepEqual(await own('', 'risky = true'), []);
  });

  it("a stranger's plugin is switched off, and not on", async () => {
    assert.deepEqual(await own('enabled = true'), ['plugins.stranger.enabled']);
    assert.deepEqual(await own('enabled = true\ncolour = "red"', 'enabled = true'), []);
    assert.deepEqual(await own('enabled = false', 'enabled = true'), []);
    assert.deepEqual(
      await refusals(`${PHOTOS}[plugins.smb]\nenabled = false\n`),
      [],
      'those that come with the daemon are toggled',
    );
  });

  it('a plugin that is not there is not switched on for later, nor changed where it is on', async () => {
    const absent = (keys: string): string => `${PHOTOS}[plugins.absent]\n${keys}\n`;
    for (const on of ['enabled = true', 'enabled = "yes"', 'enabled = 1', 'enabled = {}'])
      assert.deepEqual(await refusals(absent(on)), ['plugins.absent'], on);
    assert.deepEqual(await refusals(absent('enabled = true\nprogram = "/x"'), absent('enabled = true')), [
      'plugins.absent',
    ]);
    assert.deepEqual(await refusals(absent('enabled = true'), absent('enabled = true')), []);
    assert.deepEqual(await refusals(absent('program = "/x"')), ['plugins.absent'], 'no key waits for it');
    assert.deepEqual(await refusals(absent('enabled = false\nprogram = "/x"'), absent('enabled = true')), [
      'plugins.absent',
    ]);
    assert.deepEqual(
      await refusals(absent('enabled = false\nkey = 1'), absent('enabled = true\nkey = 1\nmore = 2')),
      [],
    );
    assert.deepEqual(await refusals(absent('enabled = false')), []);
    assert.deepEqual(await refusals(PHOTOS, absent('enabled = true')), []);
  });

  it('tables are compared by their names, and whole ones may go', async () => {
    const jobs = (...all: string[]): string =>
      all.map((one) => `[[plugins.stranger.jobs]]\n${one}\n`).join('');
    const [a, b] = ['name = "a"\nscript = "/a"', 'name = "b"\nscript = "/b"'];
    const running = `${PHOTOS}${jobs(a, b)}`;
    for (const next of [jobs(b, a), jobs(b), jobs(a, b, 'name = "c"')])
      assert.deepEqual(await refusals(`${PHOTOS}${next}`, running), [], next);
    assert.deepEqual(await refusals(`${PHOTOS}${jobs('name = "a"\nscript = "/b"')}`, running), [
      'plugins.stranger.jobs[0].script',
    ]);
    assert.deepEqual(await refusals(`${PHOTOS}${jobs('name = "c"\nscript = "/a"')}`, running), [
      'plugins.stranger.jobs[0].script',
    ]);
    assert.deepEqual(
      await refusals(`${PHOTOS}${jobs(a, a)}`, running),
      ['plugins.stranger.jobs[1].script'],
      'one stands beside another once',
    );
  });

  it('a reference stays at its key, as it is', async () => {
    const password = (value: string): string => `${PHOTOS}[web]\npassword = ${value}\n`;
    const word = '{ env = "WORD" }';
    assert.deepEqual(await refusals(password(word)), ['web.password']);
    assert.deepEqual(await refusals(password(word), password('{ env = "OTHER" }')), ['web.password']);
    assert.deepEqual(await refusals(`${password(word)}port = 1\n`, password(word)), []);
    assert.deepEqual(await refusals(password('"literal"'), password(word)), []);
    const user = (name: string): string => `${PHOTOS}[[smb.users]]\nname = "${name}"\npassword = ${word}\n`;
    assert.deepEqual(
      await refusals(user('ben'), user('anna')),
      ['smb.users[0].password'],
      'nor goes to another name',
    );
    assert.deepEqual(
      await refusals(user('anna'), password(word)),
      ['smb.users[0].password'],
      'nor to another key',
    );
    const option = (place: string): string =>
      PHOTOS.replace('"correct horse"', word).replace('pass =', `${place} =`);
    assert.deepEqual(await refusals(option('key'), option('pass')), ['connections[0].options.key']);
    const undeclared = (value: string): string => `${PHOTOS}[plugins.absent]\ndeep = { token = ${value} }\n`;
    assert.deepEqual(await refusals(undeclared(word)), ['plugins.absent'], 'wherever it stands');
  });

  it('a path does not climb', async () => {
    const at = (path: string): string => `${PHOTOS}mount_point = "${path}"\n`;
    assert.deepEqual(await refusals(at('/mnt/mountkeeper/../x')), ['shares[0].mount_point']);
    assert.deepEqual(await refusals(at('/mnt/mountkeeper/..x')), []);
    assert.deepEqual(
      await refusals(at('/mnt/mountkeeper/../x'), at('/mnt/x')),
      [],
      'what leads where it led before',
    );
  });

  it('nothing that a refused document names is read', async () => {
    const read: unknown[] = [];
    const opened = openRoom({
      services: {
        clock: {} as never,
        processes: {} as never,
        secrets: {
          resolve: (one) => {
            read.push(one);
            return 'x';
          },
        },
      },
    });
    rooms.push(opened);
    await opened.run(PHOTOS);
    refused(await opened.service.check(`${PHOTOS}[web]\npassword = { file = "/dev/tty" }\n`, 'http'));
    assert.deepEqual(read, []);
  });
});
