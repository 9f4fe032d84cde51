/**
 * Third parties' plugins in a document: unchecked while they are off, imported for what stands in the file
 * alone.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Joi } from '../../../../core/sdk/index.ts';
import { dormantContribution } from '../../../../core/plugins/discovery/found.ts';
import { entry, openRoom, PHOTOS, sampleEntries } from '../../../support/config/config-fixture.ts';
import type { Room } from '../../../support/config/config-fixture.ts';

const OFF = `${PHOTOS}
[plugins.garden]
enabled = false
token = "hush"
depth = "as deep as can be"
`;
const ON = OFF.replace('enabled = false', 'enabled = true');

describe("third parties' plugins in a document", () => {
  let room: Room;
  const rooms: Room[] = [];
  let loads: string[][];
  let isLoaded: boolean;
  let place: string | undefined;
  const dormant = entry('garden', dormantContribution({ guard: false, shareKeys: [] }), {
    thirdParty: true,
    enabledByDefault: false,
  });
  /** Its keys stand elsewhere. */
  const beds = entry('beds', dormantContribution({ guard: false, section: 'beds', shareKeys: ['bed'] }), {
    thirdParty: true,
    enabledByDefault: false,
  });
  const loaded = entry(
    'garden',
    { schema: Joi.object({ token: Joi.string(), depth: Joi.number() }) },
    { thirdParty: true, enabledByDefault: false },
  );

  const open = (): void => {
    loads = [];
    isLoaded = false;
    const opened = openRoom({
      entries: () => [...sampleEntries(), isLoaded ? loaded : dormant, beds],
      strangers: () => ({
        comesWithUs: (name) => sampleEntries().some(({ owner }) => owner === name),
        load: async (names, isolation) => {
          loads.push([...names]);
          place = isolation.get('garden');
          if (names.includes('garden')) isLoaded = true;
        },
      }),
    });
    rooms.push(opened);
    room = opened;
  };
  afterEach(() => {
    for (const opened of rooms.splice(0)) opened.close();
  });

  it('that are off are not imported, and their keys pass unchecked but for the switch', async () => {
    open();
    const check = await room.service.check(
      `${OFF}[beds]\nrows = 3\n`.replace('connection = "nas"', 'connection = "nas"\nbed = 4'),
      'file',
    );
    assert.ok(check.ok, check.ok ? '' : check.message);
    assert.deepEqual([loads.flat(), isLoaded], [[], false]);
    const wrong = await room.service.check(OFF.replace('false', '"no"'), 'file');
    assert.match(wrong.ok ? 'it was taken' : wrong.message, /plugins\.garden\.enabled/);
    const stray = await room.service.check(`${OFF}[bads]\nrows = 3\n`, 'file');
    assert.match(stray.ok ? 'it was taken' : stray.message, /bads/);
  });

  it('that are off keep their values to themselves: nobody knows which are secret', async () => {
    open();
    await room.run(OFF);
    assert.deepEqual((room.service.redacted()['plugins'] as { garden: object }).garden, {
      enabled: false,
      isolation: 'own',
      token: '********',
      depth: '********',
    });
    const check = await room.service.check(OFF.replace('hush', 'hush-now'), 'file');
    assert.ok(check.ok && !check.diff.summary.includes('hush'), JSON.stringify(check));
    assert.match(room.service.render(room.service.current.document), /token = "hush"/);
  });

  it('are imported, and their keys checked, when the file switches them on', async () => {
    open();
    const check = await room.service.check(ON, 'file');
    assert.deepEqual(loads, [['garden']]);
    assert.match(check.ok ? 'it was taken' : check.message, /plugins\.garden\.depth must be a number/);
  });

  it('are imported into the daemon only where the file vouches for them', async () => {
    for (const [line, expected] of [
      ['', 'own'],
      ['isolation = "own"', 'own'],
      ['isolation = "nine"', 'own'],
      ['isolation = "shared"', 'shared'],
      ['isolation = "none"', 'none'],
    ] as const) {
      open();
      await room.service.check(`${ON}${line}\n`, 'file');
      assert.equal(place, expected, line);
    }
  });

  it('are vouched for in the file alone', async () => {
    open();
    await room.run(OFF);
    const check = await room.service.check(`${OFF}isolation = "none"\n`, 'http');
    assert.match(check.ok ? 'it was taken' : check.message, /plugins\.garden\.isolation/);
  });

  it('cannot be switched on over HTTP, and nothing of them is imported for the answer', async () => {
    open();
    await room.run(OFF);
    for (const name of ['garden', 'unheard-of', 'of\\u0020others']) {
      const check = await room.service.check(`${PHOTOS}\n[plugins."${name}"]\nenabled = true\n`, 'http');
      assert.match(
        check.ok ? 'it was taken' : check.message,
        /does not come with Mountkeeper; it cannot be switched on over HTTP, edit the configuration file/,
      );
    }
    assert.deepEqual([loads.flat(), isLoaded], [[], false]);
  });

  it('that the file has on, and those that come with the package, may pass over HTTP', async () => {
    open();
    await room.run(ON.replace('"as deep as can be"', '4'));
    const check = await room.service.check(
      `${ON.replace('"as deep as can be"', '5')}[plugins.warmup]\nenabled = true\n`,
      'http',
    );
    assert.ok(check.ok, check.ok ? '' : check.message);
  });
});
