/**
 * A document over HTTP is judged in little time, whatever is in it: the daemon does nothing else meanwhile.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { schema as smb } from '../../../plugins/smb/config.ts';
import { schema as webdav } from '../../../plugins/webdav/config.ts';
import { NAS, openRoom, PHOTOS, refused } from '../../support/config/config-fixture.ts';

const LETTERS = 'abcdefgh';
const numbered = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');

const DOCUMENTS: Readonly<Record<string, string>> = {
  'dotted keys': numbered(40_000, (index) => `a${index}.b.c.d.e.f=1`),
  'one key of many parts': `${Array.from({ length: 400_000 }, (_, index) => LETTERS[index % 8]).join('.')}=1`,
  'many tables': numbered(110_000, (index) => `[a${index}]`),
  'a long mount point': `${PHOTOS}mount_point = "/mnt/mountkeeper/${'a/'.repeat(480_000)}"\n`,
  'a long duration': `${PHOTOS}[supervisor]\npoll_interval = "${'0s'.repeat(480_000)}1s"\n`,
  'a long size': `${PHOTOS}[cache]\nmax_size = "${'1'.repeat(900_000)}G"\n`,
  'a long rate': `${PHOTOS}[bandwidth]\nup = "${'1'.repeat(900_000)}M"\n`,
  'a long path on the remote': `${PHOTOS}remote_path = "${'a/'.repeat(480_000)}"\n`,
  'a long name': `${NAS}\n[[shares]]\nname = "${'x'.repeat(900_000)}"\nconnection = "nas"\n`,
};

describe('thousands of users', () => {
  for (const [server, schema] of Object.entries({ smb, webdav })) {
    it(`of ${server} are judged at once`, () => {
      const users = Array.from({ length: 8_000 }, (_, index) => ({ name: `u${index}`, password: 'x' }));
      const started = process.cpuUsage();
      const { error } = schema.validate({ users }, { abortEarly: false, convert: false });
      const { user, system } = process.cpuUsage(started);
      assert.match(error?.message ?? '', /1000/);
      assert.ok(user + system < 1_500_000, `${(user + system) / 1_000} ms of processor`);
    });
  }

  it('have names of their own', () => {
    const named = (...names: string[]) => ({ users: names.map((name) => ({ name, password: 'x' })) });
    assert.match(
      smb.validate(named('a', 'b', 'A')).error?.message ?? '',
      /users\[2\]" contains a duplicate value/,
    );
    assert.match(
      webdav.validate(named('a', 'b', 'a')).error?.message ?? '',
      /users\[2\]" contains a duplicate value/,
    );
    assert.equal(smb.validate(named('a', 'b')).error, undefined);
    assert.equal(webdav.validate(named('a', 'A')).error, undefined);
  });
});

describe('a hostile document', () => {
  for (const [what, text] of Object.entries(DOCUMENTS)) {
    it(`of ${what} is refused at once`, async () => {
      const room = openRoom();
      try {
        await room.run(PHOTOS);
        const started = process.cpuUsage();
        const { message } = refused(await room.service.check(text, 'http'));
        const { user, system } = process.cpuUsage(started);
        assert.ok(user + system < 700_000, `${(user + system) / 1_000} ms of processor`);
        assert.ok(message.length < 20_000, `${message.length} characters`);
      } finally {
        room.close();
      }
    });
  }
});
