/** The guide on the page: what it does with answers that are not whole. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { ConfigChanges, SetupAnswers, SetupService } from '../../../../core/contract/config-changes.ts';
import { createTestHost } from '../../../../core/testing/test-host.ts';
import type { TestHost } from '../../../../core/testing/test-host.ts';
import { createClock } from '../../../../core/platform/clock.ts';
import dashboard from '../../../../plugins/dashboard/index.ts';

describe('the guide', () => {
  let host: TestHost;
  let session: string;
  const applied: SetupAnswers[] = [];
  let version = 'v1';
  let present: readonly string[] = [];

  const act = async (action: string, form: Readonly<Record<string, string>>): Promise<string> => {
    const { payload } = await host.inject({
      method: 'POST',
      url: `/dashboard/do/setup/${action}`,
      payload: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'hx-request': 'true' },
    });
    return payload;
  };
  const share = (user: string, password: string): Promise<string> =>
    act('share', { session, user, password });

  before(async () => {
    const setup: Partial<SetupService> = {
      present: [],
      folders: async () => ['Photos'],
      shareNames: (folders) => folders.map((one) => (present.includes(one) ? `${one}-2` : one)),
      knowsUser: () => false,
      check: async () => ({
        ok: true,
        summary: '',
        changes: [],
        interrupts: { shares: [], servers: false, restart: false },
        warnings: [],
      }),
      addresses: () => [],
      apply: async (answers) => {
        applied.push(answers);
        return { status: 200, ok: true, message: '', summary: null, version: 'v' };
      },
    };
    const changes: Partial<ConfigChanges> = {
      get version() {
        return version;
      },
    };
    host = await createTestHost({
      plugins: [dashboard],
      clock: createClock(),
      services: { setup: setup as SetupService, configChanges: changes as ConfigChanges },
    });
  });
  after(() => host.close());
  beforeEach(async () => {
    applied.length = 0;
    present = [];
    const folders = await act('try', { kind: 'smb', address: 'nas', user: 'ada', password: 'x' });
    session = /name="session" value="([^"]+)"/.exec(folders)?.[1] ?? assert.fail(folders);
    assert.match(await act('choose', { session, 'f:Photos': 'on' }), /Who may use them/);
  });

  it('asks for the user of a password, and takes the password when it has one', async () => {
    assert.match(await share('', 'secret'), /Give the user whose password this is/);
    assert.match(await act('finish', { session }), /Give the user whose password this is/);
    assert.equal(applied.length, 0);
    // To the folders and back again: the page has forgotten the password, the daemon has not.
    await act('back', { session, to: 'folders', user: '', password: 'secret' });
    const again = await act('choose', { session, 'f:Photos': 'on' });
    assert.match(again, /use the password that you gave before/);
    assert.doesNotMatch(again, /secret/);
    assert.match(await share('grace', ''), /Is this right/);
    await act('finish', { session });
    assert.deepEqual(applied[0]?.lan, { user: 'grace', password: 'secret' });
  });

  it('asks for the password of a user, and uses no password of another one', async () => {
    assert.match(await share('grace', ''), /Give the user a password/);
    assert.match(await share('grace', 'secret'), /Is this right/);
    assert.match(await share('eve', ''), /Give the user a password/);
  });

  it('shows anew what would be set up when others have changed the configuration since', async () => {
    assert.match(await share('grace', 'secret'), /the share <strong><bdi>Photos<\/bdi>/);
    present = ['Photos'];
    version = 'v2';
    const anew = await act('finish', { session });
    assert.match(anew, /Somebody has changed the configuration meanwhile[^]*<strong><bdi>Photos-2<\/bdi>/);
    assert.equal(applied.length, 0);
    assert.match(await act('finish', { session }), /class="card guide done"/);
    assert.equal(applied.length, 1);
  });

  it('sets up for this machine alone where both are empty', async () => {
    assert.match(await share('grace', 'secret'), /Is this right/);
    assert.match(await share('', ''), /Is this right/);
    await act('finish', { session });
    assert.equal(applied[0]?.lan, undefined);
  });
});
