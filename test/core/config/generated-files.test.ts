import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Joi } from '../../../core/sdk/index.ts';
import { generatedFiles } from '../../../config/generated-files.ts';
import { accepted, entry, openRoom, sampleEntries } from '../../support/config/config-fixture.ts';

describe('generated files', () => {
  const files = generatedFiles(sampleEntries());

  it('are documents that the service accepts', async () => {
    const room = openRoom({ env: { NAS_PASSWORD: 'x' } });
    try {
      const standard = accepted(await room.service.check(files.get('config/default.toml') ?? '', 'file'));
      assert.deepEqual(standard.document, { connections: [], shares: [] });
      const example = accepted(await room.service.check(files.get('config/example.toml') ?? '', 'file'));
      assert.deepEqual(
        example.config.shares.map((share) => [share.name, share.connection]),
        [['photos', 'nas']],
      );
    } finally {
      room.close();
    }
  });

  it('name every key of every plugin in the reference', () => {
    const page = files.get('docs/reference/config.md') ?? '';
    for (const row of [
      '| `port` | integer | `8090` | live | core |',
      '| `password` | secret | `""` | live | auth |',
      '| `dir_refresh_interval` | duration |  | live | warmup |',
      '| `enabled` | boolean | `true` | live | core |',
    ]) {
      assert.ok(page.includes(row), row);
    }
    assert.deepEqual(page.match(/^## .*$/gm)?.slice(0, 4), [
      '## `[[connections]]`',
      '## `[[shares]]`',
      '## `[cache]`',
      '## `[supervisor]`',
    ]);
    assert.ok(page.includes('## `[[smb.users]]`') && page.includes('## `[plugins.smb]`'));
    assert.ok(page.includes('| "trace" \\| "debug" \\| "info" '));
    assert.match(page, /\| array of \S/);
  });

  it('are not made from keys that clash', () => {
    assert.throws(
      () =>
        generatedFiles([
          ...sampleEntries(),
          entry('rival', { section: 'web', schema: Joi.object({ port: Joi.number() }) }),
        ]),
      /plugin rival and the core both declare the key web\.port/,
    );
  });
});
