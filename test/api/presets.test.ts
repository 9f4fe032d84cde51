import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { parse } from 'smol-toml';
import type { LoadedConfig } from '../../core/contract/config.ts';
import { createApi, overriding, SAMPLE } from './fixture.ts';
import type { ApiFixture, FixtureOptions } from './fixture.ts';

const HAND_WRITTEN = `# my own note: do not touch the port
${SAMPLE}
[web]
password = { env = "WEB_PASSWORD" }  # in the unit file

[mount]
root = "/mnt/elsewhere"
write_back = "77s"

[plugins.stranger]
colour = "blue"
`;

const AUTHORIZATION = `Basic ${Buffer.from('admin:pw').toString('base64')}`;

describe('POST /api/preset/{profile}', () => {
  let api: ApiFixture;

  async function open(options: FixtureOptions = {}): Promise<void> {
    await api?.close();
    api = await createApi({ toml: HAND_WRITTEN, env: { WEB_PASSWORD: 'pw' }, ...options });
  }
  beforeEach(() => open());
  afterEach(() => api.close());

  const preset = (name: string) =>
    api.post(`/api/preset/${name}`, undefined, { authorization: AUTHORIZATION });
  const mount = async () => (parse(await api.fileText()) as { mount: Record<string, unknown> }).mount;

  it('answers an unknown profile with 400 and plain text, and changes nothing', async () => {
    for (const name of ['gaming', 'Office', 'toString', '__proto__', '%3Cscript%3E']) {
      const answer = await preset(name);
      assert.equal(answer.status, 400, name);
      assert.match(String(answer.headers['content-type']), /^text\/plain/);
      assert.match(answer.body, /photographer, video, office/);
    }
    assert.equal(await api.fileText(), HAND_WRITTEN);
    assert.deepEqual(api.sent, []);
  });

  it('sets the five parameters, names the profile in Chinese and sends the reload', async () => {
    for (const name of ['photographer', 'video', 'office']) {
      const answer = await preset(name);
      assert.equal(answer.status, 200);
      assert.match(String(answer.headers['content-type']), /^text\/html/);
      assert.match(answer.body, new RegExp(`^<span class="ok">.*${name}.*正在重新加载.*</span>$`));
      assert.match(answer.body, /配置/);
      const keys = Object.keys(await mount()).sort();
      assert.deepEqual(keys, [
        'buffer_size',
        'chunk_limit',
        'multi_thread_cutoff',
        'multi_thread_streams',
        'root',
        'write_back',
      ]);
      assert.equal((api.sent.at(-1)?.args[0] as LoadedConfig | undefined)?.text, await api.fileText());
    }
    assert.equal(api.sent.length, 3);
    const { buffer_size: bufferSize, write_back: writeBack, root } = await mount();
    assert.deepEqual([bufferSize, writeBack, root], ['128M', '5s', '/mnt/elsewhere']);
  });

  it('leaves connections, shares, secret references and keys of strangers as they were', async () => {
    await preset('video');
    const before = parse(HAND_WRITTEN) as Record<string, unknown>;
    const after = parse(await api.fileText()) as Record<string, unknown>;
    for (const section of ['connections', 'shares', 'web', 'plugins'])
      assert.deepEqual(after[section], before[section], section);
    assert.match(await api.fileText(), /^# /m);
  });

  it('writes the same bytes when applied twice, before and after the reload', async () => {
    await preset('office');
    const once = await api.fileText();
    await preset('office');
    assert.equal(await api.fileText(), once);
    await api.apply(once);
    await preset('office');
    assert.equal(await api.fileText(), once);
    await api.apply((await preset('video'), await api.fileText()));
    await preset('office');
    assert.equal(await api.fileText(), once);
  });

  it('keeps the hand-written file once as .bak, readable for its owner only', async () => {
    await preset('office');
    const backup = `${api.configFile}.bak`;
    assert.equal(await readFile(backup, 'utf8'), HAND_WRITTEN);
    assert.equal((await stat(backup)).mode & 0o777, 0o600);
    await api.apply(await api.fileText());
    await preset('video');
    await api.apply(await api.fileText());
    await preset('office');
    assert.equal(await readFile(backup, 'utf8'), HAND_WRITTEN);
    await writeFile(api.configFile, `${await api.fileText()}\n# new note\n`);
    await preset('office');
    await preset('video');
    assert.equal(await readFile(backup, 'utf8'), HAND_WRITTEN);
    assert.match(await readFile(`${backup}.1`, 'utf8'), /# new note\n$/);
    assert.deepEqual((await readdir(api.folder)).filter((name) => name !== 'state').sort(), [
      'config.toml',
      'config.toml.bak',
      'config.toml.bak.1',
    ]);
  });

  it('saves nothing when the copy of a hand-written file cannot be kept', async () => {
    await mkdir(`${api.configFile}.bak/full`, { recursive: true });
    const answer = await preset('office');
    assert.equal(answer.status, 200);
    assert.match(answer.body, /^<span class="error">保存配置失败：.*\.bak.*<\/span>$/);
    assert.equal(await api.fileText(), HAND_WRITTEN);
    assert.deepEqual(api.sent, []);
  });

  it('answers a failed write with 200 and an escaped reason', async () => {
    await open({
      wrapConfig: (config) =>
        overriding(config, {
          write: async () => {
            throw new Error('<disk> & "full"');
          },
        }),
    });
    const answer = await preset('office');
    assert.equal(answer.status, 200);
    assert.equal(answer.body, '<span class="error">保存配置失败：&lt;disk&gt; &amp; &quot;full&quot;</span>');
    assert.deepEqual(api.sent, []);
  });

  it('undoes no document that comes at the same moment, nor is undone by it', async () => {
    for (let round = 0; round < 8; round += 1) {
      await open();
      const toml = HAND_WRITTEN.replace('"77s"', `"${round + 80}s"`);
      const post = () => api.post('/api/config', { toml }, { authorization: AUTHORIZATION });
      const isPosted = (answer: { status: number; body: string }): boolean =>
        answer.status === 200 || answer.body.includes('just been changed by somebody else');
      const first = round % 2 === 0 ? preset('video') : post();
      const second = round % 2 === 0 ? post() : preset('video');
      const answers = await Promise.all([first, second]);
      assert.ok(answers.every(isPosted), answers.map(({ body }) => body).join());
      // The profile is asked for by name, so it holds whatever came before it.
      const { write_back: writeBack, chunk_limit: chunkLimit } = await mount();
      assert.equal(chunkLimit, '1G');
      assert.equal(writeBack, '30s');
      assert.equal(api.config.current.text, await api.fileText());
    }
  });

  it('answers a failed reload with 200 and the reason', async () => {
    api.refusal = 'the daemon is stopping';
    const answer = await preset('office');
    assert.equal(answer.status, 200);
    assert.equal(answer.body, '<span class="error">重新加载失败：the daemon is stopping</span>');
  });

  it('writes nothing that the check refuses', async () => {
    const refusal = {
      ok: false,
      stage: 'validate',
      problems: [],
      message: '"mount.chunk_limit" is not allowed',
    };
    let isRefused = false;
    await open({
      wrapConfig: (config) => {
        const check = config.check.bind(config);
        return overriding(config, {
          check: async (text: string) => (isRefused ? refusal : check(text, 'http')),
        });
      },
    });
    isRefused = true;
    const answer = await preset('office');
    assert.match(
      answer.body,
      /^<span class="error">保存配置失败：&quot;mount.chunk_limit&quot; is not allowed<\/span>$/,
    );
    assert.equal(await api.fileText(), HAND_WRITTEN);
  });
});
