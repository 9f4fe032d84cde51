import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from 'mountkeeper';
import { checkUntrusted } from '../../../plugins/webhooks/config.ts';

describe('a webhook over HTTP', () => {
  const config = (changes: Record<string, unknown>): Config =>
    ({
      notifications: {
        webhook_url: 'https://a/',
        webhook_secret: { file: '/s' },
        webhook_format: 'ntfy',
        ...changes,
      },
    }) as unknown as Config;
  const refused = (changes: Record<string, unknown>): readonly (string | undefined)[] =>
    checkUntrusted(config(changes), config({})).map(({ path }) => path);

  it('does not send a secret that only the file knows to another place, nor in another form', () => {
    assert.deepEqual(refused({ webhook_url: 'https://evil/' }), ['notifications.webhook_url']);
    assert.deepEqual(refused({ webhook_format: 'generic' }), ['notifications.webhook_format']);
  });

  it('may be switched off, changed otherwise, or given a secret of its own', () => {
    for (const changes of [
      {},
      { webhook_url: '' },
      { writeback_depth: 5 },
      { webhook_url: 'https://b/', webhook_secret: 'mine' },
    ])
      assert.deepEqual(refused(changes), []);
  });
});
