import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { seeded, strangeDocument } from '../../support/config/random-documents.ts';
import { PHOTOS, openRoom } from '../../support/config/config-fixture.ts';

const BASE = `${PHOTOS}remote_path = "/volume1"
protocols = ["smb", "nfs"]
dir_refresh_interval = "5m"

[cache]
dir = "/var/cache/x"
max_size = "10G"

[web]
port = 8091
hostnames = ["nas.example.org"]
password = { env = "WORD" }

[[smb.users]]
name = "anna"
password = "secret"

[[warmup.rules]]
share = "photos"
newer_than = "7d"

[plugins.smb]
enabled = false
`;

describe('2,000 random and mutated documents', () => {
  const room = openRoom({ env: { WORD: 'x' } });
  after(() => {
    room.close();
  });

  it('are each accepted or refused with a reason, and change nothing', async () => {
    const running = await room.run(BASE);
    const random = seeded(20_240);
    const outcomes = { accepted: 0, parse: 0, validate: 0 };
    for (let index = 0; index < 2_000; index += 1) {
      const text = strangeDocument(BASE, random);
      const check = await room.service
        .check(text, index % 2 === 0 ? 'http' : 'file')
        .catch((error: unknown) => assert.fail(`${String(error)} on ${JSON.stringify(text)}`));
      assert.equal(room.service.current, running);
      if (check.ok) {
        outcomes.accepted += 1;
        assert.equal(check.loaded.text, text);
        assert.equal(check.diff.tier === undefined, check.diff.changes.length === 0);
        assert.ok(!check.diff.summary.includes('correct horse'), text);
      } else {
        outcomes[check.stage] += 1;
        assert.ok(check.problems.length > 0 && check.message.length > 0, text);
        assert.ok(
          check.problems.every(
            (problem) => problem.line === undefined || (problem.line >= 1 && (problem.column ?? 0) >= 1),
          ),
          text,
        );
      }
    }
    // All three ways must have been gone, or the documents are not strange enough.
    assert.ok(
      outcomes.accepted > 100 && outcomes.parse > 100 && outcomes.validate > 100,
      JSON.stringify(outcomes),
    );
  });
});
