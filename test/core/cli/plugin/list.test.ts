import assert from 'node:assert/strict';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { NoDaemon, request } from '../../../../core/cli/client.ts';
import { listFound, runPlugin } from '../../../../core/cli/plugin/plugin-command.ts';
import { scaffold } from '../../../../core/cli/plugin/scaffold.ts';
import { createSecrets } from '../../../../core/config/secrets/secrets.ts';
import { freePort } from '../../../support/platform/free-port.ts';

describe('plugin list while no daemon runs', () => {
  it('shows what is found, and what the configuration switches on', async (t) => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-list-')));
    t.after(() => rm(folder, { recursive: true, force: true }));
    for (const name of ['garden', 'pond', 'shed']) {
      await mkdir(join(folder, 'plugins', name), { recursive: true });
      for (const [file, content] of Object.entries(scaffold(name, '0.1.0')))
        await writeFile(join(folder, 'plugins', name, file), content);
    }
    await writeFile(join(folder, 'plugins/shed/index.js'), 'export default');
    const file = join(folder, 'config.toml');
    await writeFile(
      file,
      '[supervisor]\nstate_dir = "state"\n[plugins]\ndirs = ["plugins"]\n[plugins.garden]\n' +
        'enabled = true\n[plugins.shed]\nenabled = true\nisolation = "none"\n',
    );
    const rows = await listFound(file, join(folder, 'none'));
    assert.deepEqual(
      rows.map(({ name, state, isolation, third_party: isStranger }) => [name, state, isolation, isStranger]),
      [
        ['garden', 'enabled', 'own', true],
        ['pond', 'disabled', 'own', true],
        ['shed', 'invalid', 'none', true],
      ],
    );
    assert.match(rows[2]?.reason ?? '', /shed/);
  });

  it('does not stand in for a daemon that was named', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const options = {
      configFile: '/nowhere/mountkeeper.toml',
      url,
      env: {},
      secrets: createSecrets({ env: {} }),
      signal: new AbortController().signal,
    };
    await assert.rejects(request(options, { method: 'GET', path: '/api/plugins' }), NoDaemon);
    const invocation = {
      args: { rest: ['list'], url },
      configFile: options.configFile,
    } as unknown as Parameters<typeof runPlugin>[0];
    const context = {
      json: false,
      request: (method: 'GET', path: string) => request(options, { method, path }),
    } as unknown as Parameters<typeof runPlugin>[1];
    await assert.rejects(runPlugin(invocation, context), NoDaemon);
  });
});
