import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MASK } from '../../../../core/sdk/index.ts';
import { openRoom, sampleEntries } from '../../../support/config/config-fixture.ts';

const TEXT = `
[[connections]]
name = "nas"
type = "sftp"
[connections.options]
host = "nas.example.org"
user = "u"
port = 22
pass = "geheim-1"
key_pem = "geheim-2"
key_file = "/root/.ssh/id"
access_key_id = "AK"
secret_access_key = "geheim-3"
odd_one = "geheim-4"
from_env = { env = "WORD" }
url = "https://me:geheim-5@example.org/"
remote = "sftp,host=h,pass=geheim-6:"
use_token = true
long = "${'l'.repeat(5_000)}"
[[smb.users]]
name = "anna"
password = "geheim-7"
[web]
password = { env = "WORD" }
[plugins.undiscovered]
api_key = "geheim-8"
level = 3
on = true
nested = { token = "geheim-9", list = [{ passphrase = "geheim-10" }, "geheim-12"] }
`;

describe('the document as it is shown', () => {
  it('masks every secret that is set, and what neither a schema nor a plugin knows', async () => {
    const room = openRoom({ env: { WORD: 'geheim-11' } });
    try {
      await room.run(TEXT);
      const shown = room.service.redacted() as Record<string, any>;
      assert.doesNotMatch(JSON.stringify(shown), /geheim|WORD/);
      assert.deepEqual(shown['connections'][0].options, {
        host: 'nas.example.org',
        user: 'u',
        port: 22,
        pass: MASK,
        key_pem: MASK,
        key_file: '/root/.ssh/id',
        access_key_id: MASK,
        secret_access_key: MASK,
        odd_one: MASK,
        from_env: MASK,
        url: MASK,
        remote: MASK,
        use_token: true,
        long: MASK,
      });
      assert.deepEqual(shown['smb'].users, [{ name: 'anna', password: MASK }]);
      assert.deepEqual(shown['web'], {
        listen: '127.0.0.1',
        port: 8090,
        hostnames: [],
        trusted_proxies: [],
        username: 'admin',
        password: MASK,
      });
      assert.deepEqual(shown['plugins'].undiscovered, {
        api_key: MASK,
        level: MASK,
        on: true,
        nested: { token: MASK, list: [{ passphrase: MASK }, MASK] },
      });
    } finally {
      room.close();
    }
  });

  it('leaves an unset secret empty', async () => {
    const room = openRoom();
    try {
      await room.run('connections = []');
      assert.equal((room.service.redacted()['web'] as { password: string }).password, '');
    } finally {
      room.close();
    }
  });

  it('masks all options when a plugin cannot say what is harmless', async () => {
    const broken = sampleEntries().map((each) => ({
      ...each,
      contribution: {
        ...each.contribution,
        harmless: () => {
          throw new Error('no');
        },
      },
    }));
    const room = openRoom({ env: { WORD: 'x' }, entries: () => broken });
    try {
      await room.run(TEXT);
      const { use_token: shown, ...options } = (room.service.redacted()['connections'] as any)[0].options;
      assert.deepEqual([shown, new Set(Object.values(options))], [true, new Set([MASK])]);
    } finally {
      room.close();
    }
  });
});
