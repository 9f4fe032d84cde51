/** The text as it is shown over HTTP, and what comes back: no secret goes out, and none goes elsewhere. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { Joi } from '../../../../core/sdk/index.ts';
import { checkUntrusted } from '../../../../plugins/mount/options/untrusted-options.ts';
import {
  NAS,
  PHOTOS,
  accepted,
  entry,
  openRoom,
  refused,
  sampleEntries,
} from '../../../support/config/config-fixture.ts';
import type { Room } from '../../../support/config/config-fixture.ts';

const rooms: Room[] = [];

async function running(text: string): Promise<Room['service']> {
  const opened = openRoom({ env: { NAS_PASSWORD: 'x' } });
  rooms.push(opened);
  await opened.run(text);
  return opened.service;
}

const NOTED = PHOTOS.replace(
  'name = "nas"',
  'name = "nas" # in the cellar\n# the old password was hunter2\n# pass = "hunter3"',
);

describe('the text as it is shown', () => {
  afterEach(() => {
    for (const opened of rooms.splice(0)) opened.close();
  });

  it('holds no secret, in no value and no note, and everything else', async () => {
    const service = await running(NOTED);
    const shown = service.shown();
    assert.doesNotMatch(shown, /correct horse|hunter/);
    assert.match(shown, /# in the cellar\n# \*{8} 2\n# \*{8} 3\n/);
    assert.equal(shown.split('\n').length, NOTED.split('\n').length);
  });

  it('comes back as it was', async () => {
    const service = await running(NOTED);
    const check = await service.check(service.shown(), 'http', { keepSecrets: true });
    assert.equal(accepted(check).text, NOTED);
    assert.equal(check.ok && check.diff.tier, undefined);
    assert.match(refused(await service.check(service.shown(), 'http')).message, /holds the mask/);
  });

  it('brings back no note with a secret that is changed at the same time: nothing would hide it any more', async () => {
    const service = await running(
      PHOTOS.replace('name = "nas"', 'name = "nas" # in the cellar: correct horse'),
    );
    assert.doesNotMatch(service.shown(), /correct horse/);
    const changed = service.shown().replace(/(pass\w* = )"\*{8}"/, '$1"battery staple"');
    assert.match(changed, /battery staple/);
    const { text } = accepted(await service.check(changed, 'http', { keepSecrets: true }));
    assert.doesNotMatch(text, /correct horse/);
    assert.match(text, /name = "nas" # \*{8}\n/);
  });

  it('gives a former text, restored, no note of the running one in the place of its own', async () => {
    const former = PHOTOS.replace('name = "nas"', 'name = "nas"\n# key is with Anna\n# old: port = 8080');
    const service = await running(`# the key is new\n${former.replace('# old: port = 8080\n', '')}`);
    const shown = service.shown(former);
    assert.match(shown, /name = "nas"\n# \*{8} 2\n# \*{8}\n/);
    const { text } = accepted(await service.check(shown, 'http', { keepSecrets: true }));
    assert.match(text, /name = "nas"\n# key is with Anna\n# \*{8}\n/);
  });

  it('keeps a reference as it is written', async () => {
    const text = PHOTOS.replace('"correct horse"', '{ env = "NAS_PASSWORD" } # where');
    const service = await running(text);
    assert.doesNotMatch(service.shown(), /NAS_PASSWORD/);
    assert.equal(accepted(await service.check(service.shown(), 'http', { keepSecrets: true })).text, text);
  });

  /** As the page sends it back when nothing was changed. */
  const comesBack = async (text: string): Promise<string> => {
    const service = await running(text);
    assert.equal(service.isShownAnew(), false);
    return accepted(await service.check(service.shown(), 'http', { keepSecrets: true })).text;
  };

  it('masks a reference by a dotted key, whatever stands beside, and brings it back as it was', async () => {
    const text = NOTED.replace('pass = "correct horse"', 'pass . "env" = "NAS_PASSWORD" # where');
    const service = await running(text);
    assert.doesNotMatch(service.shown(), /NAS_PASSWORD|env/);
    assert.match(service.shown(), /^pass = "\*{8}" # where$/m);
    assert.equal(await comesBack(text), text);
    const inline = PHOTOS.replace(
      /\[connections\.options\]\nhost = (".*?")\npass = ".*?"/,
      'options = { host = $1, pass.env = "NAS_PASSWORD" } # all',
    );
    assert.equal(await comesBack(inline), inline);
    const deep = PHOTOS.replace(
      /\[connections\.options\]\nhost = (".*?")\npass = ".*?"/,
      'options.host = $1 # there\noptions.pass.env = "NAS_PASSWORD" # its name',
    );
    assert.doesNotMatch((await running(deep)).shown(), /NAS_PASSWORD|env/);
    assert.equal(await comesBack(deep), deep);
  });

  it('masks a reference that is a table of its own, and keeps every note', async () => {
    const text = PHOTOS.replace(
      'pass = "correct horse"',
      '# ours\n[connections.options.pass] # of the office\n# below\nenv = "NAS_PASSWORD" # where',
    );
    const service = await running(text);
    const shown = service.shown();
    assert.doesNotMatch(shown, /NAS_PASSWORD|env/);
    const back = await comesBack(text);
    for (const note of ['# ours', '# of the office', '# below', '# where'])
      assert.ok(back.includes(note), back);
    assert.match(back, /^pass = \{ env = "NAS_PASSWORD" \}$/m);
    const check = await service.check(shown, 'http', { keepSecrets: true });
    assert.deepEqual(check.ok && check.diff.changes, []);
  });

  it('keeps the notes where a password is also the name of something', async () => {
    const text =
      `# of Ada\n${PHOTOS.replace('name = "photos"', 'name = "photos" # of photos')}` +
      '\n[web]\npassword = "photos" # keep\n[[smb.users]]\nname = "alice" # she\npassword = "alice"\n';
    const service = await running(text);
    const shown = service.shown();
    assert.match(shown, /^password = "\*{8}" # keep\n[^]*\nname = "alice" # she\npassword = "\*{8}"$/m);
    assert.match(shown, /^name = "photos" # \*{8} 2$/m, 'a note with a password is hidden');
    assert.equal(await comesBack(text), text);
  });

  it('is written anew where that hides what masking does not, and says so', async () => {
    const note = '# 8090';
    const text = `${PHOTOS}\n[web] ${note}\nport = 0x1f9a\npassword = "0x1f9a"\n`;
    const service = await running(text);
    assert.equal(service.isShownAnew(), true);
    assert.doesNotMatch(service.shown(), /0x1f9a|# 8090/);
    assert.match(service.shown(), /^port = 8090$/m);
    assert.equal((await running(PHOTOS)).isShownAnew(), false);
  });

  it('comes back from a browser with the line ends of the file', async () => {
    const text = NOTED.replaceAll('\n', '\r\n');
    const service = await running(text);
    const typed = service.shown().replaceAll('\r\n', '\n');
    assert.equal(accepted(await service.check(typed, 'http', { keepSecrets: true })).text, text);
    const mixed = `# one\r\n${NOTED}`;
    assert.equal(
      accepted(await (await running(mixed)).check(NOTED, 'http', { keepSecrets: true })).text,
      NOTED,
    );
  });

  it('takes no secret that was typed behind the mask, and leaves one alone that stood in the file', async () => {
    const service = await running(PHOTOS.replace('correct horse', '********x'));
    const check = (text: string): ReturnType<typeof service.check> =>
      service.check(text, 'http', { keepSecrets: true });
    accepted(await check(service.shown()));
    const { problems } = refused(await check(service.shown().replace('********', '********y')));
    assert.deepEqual(
      problems.map(({ path, message }) => [path, message]),
      [
        [
          'connections[0].options.pass',
          'connections[0].options.pass begins with the mask "********"; give the whole secret again',
        ],
      ],
    );
    accepted(await service.check(PHOTOS.replace('correct horse', '********z'), 'file'));
  });

  it('gives no secret to another key, and none that the running document has not', async () => {
    const service = await running(PHOTOS);
    const moved = service.shown().replace('pass =', 'other =');
    assert.match(
      refused(await service.check(moved, 'http', { keepSecrets: true })).message,
      /connections\[0\]\.options\.other holds the mask/,
    );
    await running(NAS);
  });

  it('asks for the secret of what was renamed, at its key', async () => {
    const service = await running(PHOTOS);
    const renamed = service.shown().replaceAll('"nas"', '"other"');
    const { problems } = refused(await service.check(renamed, 'http', { keepSecrets: true }));
    assert.deepEqual(
      problems.map(({ path, message }) => [path, message]),
      [
        [
          'connections[0].options.pass',
          'connections[0].options.pass has no secret to keep: nothing called "other" is in force; ' +
            'after a rename, give it again',
        ],
      ],
    );
    accepted(await service.check(renamed.replace('********', 'again'), 'http', { keepSecrets: true }));
    assert.match(refused(await service.check(renamed, 'http')).message, /holds the mask/);
  });

  it('lets a connection lead elsewhere only with its secrets given again', async () => {
    const entries = [
      ...sampleEntries(),
      entry('guard', { section: 'guard', schema: Joi.object({}), checkUntrusted }),
    ];
    const opened = openRoom({ entries: () => entries });
    rooms.push(opened);
    await opened.run(PHOTOS.replace('pass =', 'user = "u"\npass ='));
    const shown = opened.service.shown();
    const elsewhere = shown.replace('nas.example.org', 'evil.example.org');
    const problem = refused(await opened.service.check(elsewhere, 'http', { keepSecrets: true })).message;
    assert.match(
      problem,
      /option "host" cannot be changed over HTTP.*or give the secrets of the connection again/,
    );
    assert.ok(
      accepted(
        await opened.service.check(elsewhere.replace('********', 'typed anew'), 'http', {
          keepSecrets: true,
        }),
      ),
    );
    const another = `${shown}\n[[shares]]\nname = "more"\nconnection = "nas"\n`;
    assert.ok(
      accepted(await opened.service.check(another, 'http', { keepSecrets: true })),
      'what does not lead it elsewhere is free',
    );
  });

  it('shows no secret, whatever it is and wherever it stands', async () => {
    const opened = openRoom();
    rooms.push(opened);
    const secretText = fc.string({ minLength: 6, maxLength: 30 }).map((text) => `S3cret${text}`);
    await fc.assert(
      fc.asyncProperty(
        secretText,
        secretText,
        fc.constantFrom('# ', '# pass = ', '# see '),
        async (first, second, lead) => {
          const note = lead + second.replaceAll(/[\x00-\x1f\x7f]/g, '');
          const text =
            `${NAS.replace('"correct horse"', () => JSON.stringify(first).replaceAll('\x7f', ''))}` +
            '\n[[smb.users]]\nname = "a"\n' +
            `password = ${JSON.stringify(second).replaceAll('\x7f', '')} ${note}\n`;
          const shown = opened.service.shown(text);
          assert.doesNotMatch(shown, /S3cret/);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('puts a secret back at its own key alone, whatever comes back', async () => {
    const service = await running(
      `${NOTED}\n[[smb.users]]\nname = "a"\npassword = "second secret"\n[[smb.users]]\n` +
        'name = "b"\npassword = "third secret"\n',
    );
    const lines = service.shown().split('\n');
    const extra = [
      'pass = "********"',
      '[connections.options]',
      '[[connections]]',
      'name = "nas"',
      'name = "b"',
      '[[smb.users]]',
      'password = "********"',
      'host = "********"',
      '# ******** 2',
      '[smb]',
      'x = ["********"]',
      'options = { pass = "********" }',
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(lines.length), fc.constantFrom(...extra), fc.boolean()), { maxLength: 6 }),
        async (edits) => {
          const text = [...lines];
          for (const [at, line, isReplaced] of edits) text.splice(at, isReplaced ? 1 : 0, line);
          const check = await service.check(text.join('\n'), 'http', { keepSecrets: true });
          if (!check.ok)
            return assert.doesNotMatch(check.message, /correct horse|second secret|third secret/);
          const { connections, smb } = check.loaded.config as unknown as {
            connections: { name: string }[];
            smb: { users: { name: string }[] };
          };
          const owners = { 'correct horse': ['nas'], 'second secret': ['a'], 'third secret': ['b'] };
          for (const [secret, [owner]] of Object.entries(owners)) {
            const holders = [...connections, ...smb.users]
              .filter((one) => JSON.stringify(one).includes(secret))
              .map(({ name }) => name);
            assert.ok(
              holders.every((name) => name === owner),
              `${secret} stands at ${holders.join()}`,
            );
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('says by its path what it would mask, also of a document that nobody has checked', async () => {
    const service = await running(NAS);
    const isSecret = service.secretsIn({
      connections: [{ type: 'sftp', options: { host: 'nas', pass: '', strange: 'x' } }, 'none'],
      groups: { office: 'anna' },
      web: { password: { env: 'X' } },
    });
    const option = (name: string) => ['connections', 0, 'options', name];
    assert.deepEqual(
      ['host', 'pass', 'strange'].map((name) => isSecret(option(name))),
      [false, true, true],
    );
    assert.deepEqual([isSecret(['web', 'password']), isSecret(['connections', 0, 'type'])], [true, false]);
  });

  it('shows other texts the same way', async () => {
    const service = await running(NAS);
    assert.doesNotMatch(service.shown(PHOTOS), /correct horse/);
    assert.throws(() => service.shown('a = = 1'), /./);
  });
});
