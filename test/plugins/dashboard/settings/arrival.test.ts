/** Who tells the daemon that its settings on trial shut nobody out: whoever may change them, on any page. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ConfigChanges, ConfigTrial } from '../../../../core/contract/config-changes.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import { createTestHost } from '../../../../core/testing/test-host.ts';
import type { TestHost } from '../../../../core/testing/test-host.ts';
import auth from '../../../../plugins/auth/index.ts';
import { makeHash } from '../../../../plugins/auth/password-hash.ts';
import dashboard from '../../../../plugins/dashboard/index.ts';

const TELLS = /hx-post="\/dashboard\/do\/settings\/reached"[^>]*hx-vals="[^"]*v1/;
const ON_TRIAL: ConfigTrial = {
  version: 'v1',
  until: 0,
  isReached: false,
  failed: [],
  down: [],
  waiting: [],
};

describe('settings on trial', () => {
  let host: TestHost;
  let trial: ConfigTrial | undefined;
  const reached: string[] = [];
  const headersOf = (name: string) => ({ authorization: `Basic ${btoa(`${name}:word`)}` });
  const page = async (url: string, name: string): Promise<string> =>
    (await host.inject({ url, headers: headersOf(name) })).payload;

  before(async () => {
    const changes: Partial<ConfigChanges> = {
      get trial() {
        return trial;
      },
      version: 'v1',
      history: () => [],
      reached: (version) => reached.push(version) > 0,
    };
    const password_hash = await makeHash('word');
    host = await createTestHost({
      plugins: [dashboard, auth],
      clock: createClock(),
      services: { configChanges: changes as ConfigChanges },
      config: {
        web: { users: ['operator', 'admin'].map((role) => ({ name: role, password_hash, role })) },
      },
    });
  });
  after(() => host.close());

  it('are told to be reached by every page that an administrator opens, until one has told it', async () => {
    for (const url of ['/', '/tabs/settings', '/tabs/plugins', '/shares/none']) {
      trial = undefined;
      assert.doesNotMatch(await page(url, 'admin'), TELLS, url);
      trial = ON_TRIAL;
      const shown = await page(url, 'admin');
      assert.match(shown, TELLS, url);
      assert.match(shown, /#trial">On trial: keep or take back</, url);
      if (url === '/tabs/settings') assert.match(shown, /Taken back at <time [^>]*data-style="second"/);
      trial = { ...ON_TRIAL, isReached: true };
      assert.doesNotMatch(await page(url, 'admin'), TELLS, url);
    }
    const { payload } = await host.inject({
      method: 'POST',
      url: '/dashboard/do/settings/reached',
      payload: 'version=v1',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headersOf('admin') },
    });
    assert.match(payload, /still reaches Mountkeeper/);
    assert.deepEqual(reached, ['v1']);
  });

  it('are not told of by those who may not change them', async () => {
    trial = ON_TRIAL;
    assert.doesNotMatch(await page('/', 'operator'), /reached/);
  });
});
