import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { isHandWritten, keepHandWritten } from '../../../plugins/presets/backup.ts';
import { escapeHtml, fragmentOf, readFragment } from '../../../plugins/presets/fragment.ts';
import presets from '../../../plugins/presets/index.ts';
import { parseProfile, PROFILES, withProfile } from '../../../plugins/presets/profiles.ts';
import { durationMs, sizeBytes } from '../../../core/sdk/index.ts';
import { runCommand } from '../../api/cli.ts';

describe('profiles', () => {
  it('set the same five parameters with values that can be read', () => {
    for (const profile of Object.values(PROFILES)) {
      assert.deepEqual(Object.keys(profile), [
        'chunk_limit',
        'multi_thread_streams',
        'multi_thread_cutoff',
        'buffer_size',
        'write_back',
      ]);
      assert.ok(durationMs(profile.write_back) > 0 && Number.isInteger(profile.multi_thread_streams));
      for (const size of [profile.chunk_limit, profile.multi_thread_cutoff, profile.buffer_size])
        assert.ok(sizeBytes(size) > 0);
    }
    assert.deepEqual([PROFILES.office.buffer_size, PROFILES.office.write_back], ['128M', '5s']);
  });

  it('are applied to a copy', () => {
    const document = { connections: [{ name: 'nas' }], mount: { root: '/x', write_back: '1s' } };
    const before = structuredClone(document);
    const once = withProfile(document, 'video');
    assert.deepEqual(document, before);
    assert.deepEqual(once, { connections: [{ name: 'nas' }], mount: { root: '/x', ...PROFILES.video } });
    assert.deepEqual(withProfile(once, 'video'), once);
    assert.deepEqual(withProfile({}, 'office'), { mount: PROFILES.office });
  });

  it('are known by their exact names alone', () => {
    assert.equal(parseProfile('video'), 'video');
    for (const name of ['', 'Video', 'constructor', 'video '])
      assert.throws(() => parseProfile(name), /photographer, video, office/);
  });
});

describe('the fragment', () => {
  it('escapes what it did not write itself and reads back', () => {
    const detail = '<b onload="x">\'&';
    const fragment = fragmentOf('office', { kind: 'not-saved', detail });
    assert.ok(!fragment.includes('<b'));
    assert.deepEqual(readFragment(fragment), { ok: false, text: `保存配置失败：${detail}` });
    assert.equal(escapeHtml('plain 文'), 'plain 文');
    assert.equal(readFragment(fragmentOf('office', { kind: 'applied' })).ok, true);
  });
});

describe('a hand-written file', () => {
  it('is one with a line that no rendering has', () => {
    const rendered = ['# Comment.\na = 1\n', '# Comment.\na = 2\n'];
    assert.equal(isHandWritten('# Comment.\n\n  a = 1\n', rendered), false);
    assert.equal(isHandWritten('# Comment.\na = 1 # why\n', rendered), true);
    assert.equal(isHandWritten('# Note\na = 1\n', rendered), true);
  });

  it('is never lost for a later copy, as after an upgrade that words comments otherwise', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'mk-presets-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'config.toml');
    const keep = async (text: string, rendered: string): Promise<boolean> => {
      await writeFile(file, text);
      return keepHandWritten(file, [rendered]);
    };
    const [own, noted] = ['a = 1 # mine\n', 'a = 1 # new note\n'];
    assert.equal(await keep(own, '# Old words.\na = 1\n'), true);
    for (const text of ['# Old words.\na = 1\n', noted, own, noted])
      assert.equal(await keep(text, '# New words.\na = 1\n'), true);
    const names = (await readdir(folder)).filter((name) => name !== 'config.toml').sort();
    const kept = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')]);
    assert.deepEqual(Object.fromEntries(await Promise.all(kept)), {
      'config.toml.bak': own,
      'config.toml.bak.1': '# Old words.\na = 1\n',
      'config.toml.bak.2': noted,
    });
  });
});

describe('mountkeeper preset', () => {
  const answering = (status: number, body: string) => async () => ({ status, body });

  it('tells of success and failure in plain words', async () => {
    const good = await runCommand(presets, ['preset', 'office'], {
      request: answering(200, fragmentOf('office', { kind: 'applied' })),
    });
    assert.deepEqual(
      [good.code, good.printed],
      [0, ['Preset office is applied; the configuration is being reloaded.']],
    );
    const bad = await runCommand(presets, ['preset', 'office'], {
      request: answering(200, fragmentOf('office', { kind: 'not-sent', detail: 'a & b' })),
    });
    assert.deepEqual([bad.code, bad.errors], [1, ['重新加载失败：a & b']]);
  });

  it('exits with 64 for an unknown one or none', async () => {
    const unknown = await runCommand(presets, ['preset', 'x'], {
      request: answering(400, 'unknown preset "x"'),
    });
    assert.deepEqual([unknown.code, unknown.errors], [64, ['unknown preset "x"']]);
    assert.equal((await runCommand(presets, ['preset'], { request: answering(200, '') })).code, 64);
  });
});
