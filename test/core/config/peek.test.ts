import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { peekConfig } from '../../../core/config/peek.js';

async function file(t: TestContext, text: string): Promise<{ dir: string; path: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'mountkeeper-peek-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, 'mountkeeper.toml');
  await writeFile(path, text);
  return { dir, path };
}

const DEFAULTS = {
  stateDir: '/var/lib/mountkeeper',
  pluginDirs: [],
  switched: new Map<string, boolean>(),
  isolation: new Map<string, string>(),
  isAnybodyAsked: false,
  logFile: '',
  logLevel: 'info',
};

describe('first look at the configuration', () => {
  it('takes relative paths from the folder of the file', async (t) => {
    const { dir, path } = await file(
      t,
      '[supervisor]\nstate_dir = "state"\n[plugins]\ndirs = ["mine", "/opt/theirs"]\n' +
        '[log]\nfile = "d.log"\nlevel = "debug"\n',
    );
    assert.deepEqual(await peekConfig(path), {
      stateDir: join(dir, 'state'),
      pluginDirs: [join(dir, 'mine'), '/opt/theirs'],
      switched: new Map(),
      isolation: new Map(),
      isAnybodyAsked: false,
      logFile: join(dir, 'd.log'),
      logLevel: 'debug',
    });
  });

  it('tells which plugins are switched on or off', async (t) => {
    const { path } = await file(
      t,
      '[plugins]\ndirs = []\n[plugins.example]\nenabled = true\n[plugins.smb]\n' +
        'enabled = false\n[plugins.nfs]\nenabled = "no"\n',
    );
    assert.deepEqual(
      [...(await peekConfig(path)).switched],
      [
        ['example', true],
        ['smb', false],
      ],
    );
  });

  it('tells whether anybody is asked for a password', async (t) => {
    for (const web of ['password = "x"', 'password = { file = "x" }', '[[web.users]]\nname = "ada"'])
      assert.equal((await peekConfig((await file(t, `[web]\n${web}\n`)).path)).isAnybodyAsked, true, web);
    assert.equal((await peekConfig((await file(t, '[web]\npassword = ""\n')).path)).isAnybodyAsked, false);
  });

  it('has defaults for a file that is missing, broken or full of nonsense', async (t) => {
    assert.deepEqual(await peekConfig('/nowhere/mountkeeper.toml'), DEFAULTS);
    assert.deepEqual(await peekConfig((await file(t, 'a = = b')).path), DEFAULTS);
    const nonsense = 'supervisor = 5\nweb = 7\nplugins = "x"\n[log]\nfile = 1\nlevel = "loud"\n';
    assert.deepEqual(await peekConfig((await file(t, nonsense)).path), DEFAULTS);
  });
});
