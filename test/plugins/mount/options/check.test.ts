import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config, Services } from 'mountkeeper';
import { check } from '../../../../plugins/mount/options/check.ts';

const SERVICES = { processes: {}, secrets: {}, clock: {} } as unknown as Pick<
  Services,
  'processes' | 'secrets' | 'clock'
>;

const pathsFor = async (options: Record<string, unknown>): Promise<readonly (string | undefined)[]> => {
  const config = {
    connections: [{ name: 'nas', type: 'sftp', options }],
    shares: [],
    mount: {},
    supervisor: { state_dir: '/nowhere' },
  } as unknown as Config;
  return (await check(config, SERVICES)).map(({ path }) => path);
};

describe('what rclone would make of an option', () => {
  it('is what was written: a value that stands for another option is refused, also beside other text', async () => {
    for (const host of ['%(pass)s', 'a%(pass)s', 'nas %(x', '%%(pass)s'])
      assert.deepEqual(await pathsFor({ host }), ['connections[0].options.host'], host);
    assert.deepEqual(await pathsFor({ host: '100% (sure)' }), []);
    assert.deepEqual(await pathsFor({ host: 'nas', pass: '%(host)s' }), [], 'a password is obscured first');
  });
});

describe('where releases of rclone are fetched from', () => {
  const problemsFor = async (mount: Partial<Config['mount']>) => {
    const config = { connections: [], shares: [], mount, supervisor: { state_dir: '/nowhere' } };
    return check(config as unknown as Config, SERVICES);
  };

  it('is given without a user name and a password, which would be shown', async () => {
    for (const secret of ['ada:geheim@', 'ada@', ':geheim@'])
      for (const key of ['rclone_mirror', 'rclone_proxy'] as const) {
        const found = await problemsFor({ [key]: `https://${secret}mirror.example.org/rclone` });
        assert.deepEqual(
          found.map(({ path }) => path),
          [`mount.${key}`],
          secret,
        );
        assert.match(found[0]?.message ?? '', /no user name and no password.*(install --file|https_proxy)/);
        assert.doesNotMatch(found[0]?.message ?? '', /geheim/);
      }
    const harmless = 'http://mirror.example.org:3128/a@b';
    assert.deepEqual(await problemsFor({ rclone_mirror: harmless, rclone_proxy: harmless }), []);
    assert.deepEqual(await problemsFor({ rclone_mirror: harmless, rclone_proxy: '' }), []);
  });
});
