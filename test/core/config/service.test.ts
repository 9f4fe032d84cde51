import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { Joi } from '../../../core/sdk/index.ts';
import {
  NAS,
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

function closeRooms(): void {
  for (const opened of rooms.splice(0)) opened.close();
}

describe('the configuration service', () => {
  afterEach(closeRooms);

  it('has no configuration before the first commit', async () => {
    const { service } = room({ text: PHOTOS });
    assert.throws(() => service.current, /no configuration has been loaded yet/);
    const check = await service.loadFile();
    assert.deepEqual(check.ok && check.diff, { changes: [], tier: undefined, summary: 'No changes' });
    service.commit(accepted(check));
    assert.equal(service.current.text, PHOTOS);
  });

  it('says in plain words why a file cannot be loaded', async () => {
    const opened = room();
    assert.match(
      refused(await opened.service.loadFile()).message,
      /^the configuration file cannot be read: there is no such file$/,
    );
    writeFileSync(opened.file, Buffer.from([0x78, 0xff]));
    assert.match(refused(await opened.service.loadFile()).message, /it is not UTF-8 text$/);
    rmSync(opened.file);
    mkdirSync(opened.file);
    assert.match(refused(await opened.service.loadFile()).message, /it is not a plain file$/);
  });

  it('warns of a file that everybody may read when a secret stands in it', async () => {
    const opened = room({ env: { NAS_PASSWORD: 'x' } });
    const warningsOf = async (text: string, mode: number): Promise<readonly string[]> => {
      writeFileSync(opened.file, text);
      chmodSync(opened.file, mode);
      return accepted(await opened.service.loadFile()).warnings;
    };
    assert.match((await warningsOf(PHOTOS, 0o644)).join(), /every user .* mode 0600/);
    assert.deepEqual(await warningsOf(PHOTOS, 0o640), []);
    assert.deepEqual(
      await warningsOf(PHOTOS.replace('"correct horse"', '{ env = "NAS_PASSWORD" }'), 0o644),
      [],
    );
  });

  it('keeps the running document while others are checked', async () => {
    const opened = room();
    const running = await opened.run(PHOTOS);
    accepted(await opened.service.check(NAS, 'http'));
    refused(await opened.service.check('connections = 1', 'http'));
    assert.equal(opened.service.current, running);
  });

  it('asks for a file to be read again that was put back after it was refused', async () => {
    const opened = room({ text: PHOTOS });
    const { service, file } = opened;
    service.commit(accepted(await service.loadFile()));
    assert.equal(service.isKnown(PHOTOS), true);
    const broken = 'this is no TOML';
    writeFileSync(file, broken);
    refused(await service.loadFile());
    assert.deepEqual([service.isKnown(broken), service.isKnown(PHOTOS)], [true, false]);
    writeFileSync(file, PHOTOS);
    accepted(await service.loadFile());
    assert.equal(service.isKnown(PHOTOS), true);
  });

  it('lets the reviewer refuse a change, and does not ask when there is none', async () => {
    const asked: string[] = [];
    const opened = room({
      review: async (_next, diff) => {
        asked.push(diff.summary);
        return 'not during the backup';
      },
    });
    await opened.run(PHOTOS);
    accepted(await opened.service.check(`${PHOTOS}# same\n`, 'http'));
    const check = refused(await opened.service.check(NAS, 'http'));
    assert.deepEqual(
      [check.stage, check.message, asked],
      ['validate', 'not during the backup', ['shares.photos: removed']],
    );
  });

  it('sees no difference when a plugin was discovered in the meantime, and takes its keys at once', async () => {
    const entries = sampleEntries();
    const opened = room({ entries: () => entries });
    await opened.run(PHOTOS);
    entries.push(
      entry('late', {
        section: 'late',
        schema: Joi.object({ key: Joi.number().default(1).description('K.') }),
      }),
    );
    const same = await opened.service.check(PHOTOS, 'http');
    assert.equal(same.ok && same.diff.tier, undefined);
    const check = await opened.service.check(`${PHOTOS}[late]\nkey = 2\n`, 'http');
    assert.equal(check.ok && check.diff.summary, 'late.key: 1 → 2');
    entries.pop();
    assert.match(
      refused(await opened.service.check(`${PHOTOS}[late]\nkey = 2\n`, 'http')).message,
      /unknown key "late"/,
    );
  });

  it('goes on without a plugin whose keys clash, and warns', async () => {
    const opened = room({
      entries: () => [
        ...sampleEntries(),
        entry('rival', { section: 'web', schema: Joi.object({ port: Joi.number() }) }),
      ],
    });
    const { warnings } = await opened.run(PHOTOS);
    assert.deepEqual(warnings, [
      'plugin rival is left out: plugin rival and the core both declare the key web.port',
    ]);
  });

  it('writes over nothing that nobody has read, and no text that was made from another', async () => {
    const opened = openRoom({ text: PHOTOS });
    const { service, file } = opened;
    try {
      const first = accepted(await service.loadFile());
      service.commit(first);
      const saved = `${PHOTOS}[web]\nport = 1\n`;
      writeFileSync(file, saved);
      await assert.rejects(service.write(PHOTOS, first), /has just been changed by somebody else/);
      assert.equal(readFileSync(file, 'utf8'), saved);
      const second = accepted(await service.loadFile());
      await assert.rejects(
        service.write(PHOTOS, first),
        /changed by somebody else/,
        'it is read, and does not run yet',
      );
      service.commit(second);
      await assert.rejects(service.write(PHOTOS, first), /changed by somebody else/);
      service.commit(accepted(await service.loadFile()));
      await service.write(PHOTOS, second);
      await assert.rejects(
        service.write(saved, second),
        /changed by somebody else/,
        'what was written does not run yet',
      );
      service.commit(accepted(await service.loadFile()));
      writeFileSync(file, 'no = [toml');
      assert.equal((await service.loadFile()).ok, false);
      await service.write(saved, service.current);
      assert.equal(readFileSync(file, 'utf8'), saved, "what cannot run is in nobody's way");
      assert.equal(readFileSync(`${file}.refused`, 'utf8'), 'no = [toml', 'and stays beside');
    } finally {
      opened.close();
    }
  });

  it('lets one of two writers through who begin at the same moment with the same document', async () => {
    const opened = room();
    const basis = await opened.run(PHOTOS);
    const texts = [`${PHOTOS}[web]\nport = 1\n`, `${PHOTOS}[web]\nport = 2\n`];
    const ends = await Promise.allSettled(texts.map((text) => opened.service.write(text, basis)));
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    assert.equal(readFileSync(opened.file, 'utf8'), texts[0]);
  });

  it('has what it wrote as the running document where no daemon is told', async () => {
    const { service } = room({ text: PHOTOS });
    service.commit(accepted(await service.loadFile()));
    const text = PHOTOS.replace('photos', 'pictures');
    assert.equal((await service.apply({ text, origin: 'file' })).ok, true);
    assert.equal(service.current.text, text);
  });

  it('compares, writes, renders and lists through one door', async () => {
    const opened = room();
    const before = await opened.run(PHOTOS);
    const after = accepted(await opened.service.check(NAS, 'http'));
    assert.equal(opened.service.compare(before.config, after.config).summary, 'shares.photos: removed');
    await opened.service.write(opened.service.render(before.document));
    assert.deepEqual(accepted(await opened.service.loadFile()).document, before.document);
    assert.ok(readFileSync(opened.file, 'utf8').includes('# The remotes.'));
    assert.deepEqual(
      opened.service.keys().find((key) => key.path === 'web.password'),
      {
        path: 'web.password',
        type: 'secret',
        description: 'Password.',
        default: '',
        tier: 'live',
        secret: true,
        translations: {},
        fileOnly: false,
        owner: 'auth',
      },
    );
  });
});
