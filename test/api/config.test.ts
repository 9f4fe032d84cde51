import assert from 'node:assert/strict';
import { mkdir, rm, stat } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { LoadedConfig } from '../../core/contract/config.ts';
import { createApi, overriding, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

interface ConfigBody {
  ok: boolean;
  message: string;
  diff_summary: string | null;
}

const CHANGED = `${SAMPLE}\n# a note\n[supervisor]\npoll_interval = "3s"\n`;

describe('GET /api/config', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await createApi({ toml: `${SAMPLE}\n[web]\npassword = "secret word"\n` });
  });
  afterEach(() => api.close());

  it('gives the document with every default and no secret', async () => {
    const authorization = `Basic ${Buffer.from('admin:secret word').toString('base64')}`;
    const answer = await api.get('/api/config', { authorization });
    assert.equal(answer.status, 200);
    assert.match(String(answer.headers['content-type']), /^application\/json/);
    const body = answer.json() as {
      web: Record<string, unknown>;
      shares: { name: string }[];
      log: { file: string };
    };
    assert.deepEqual(
      body.shares.map((share) => share.name),
      ['photos', '照片 2024'],
    );
    assert.equal(body.web['password'], '********');
    assert.equal(body.web['port'], 8090);
    assert.equal(body.log.file, '');
    assert.ok(!answer.body.includes('secret word'));
  });
});

describe('GET /api/config of a document without a JSON form', () => {
  for (const [what, document] of [
    ['throws', { big: 1n }],
    ['gives nothing', undefined],
  ] as const) {
    it(`answers null when serialisation ${what}`, async () => {
      const api = await createApi({
        wrapConfig: (config) => overriding(config, { redacted: () => document }),
      });
      const answer = await api.get('/api/config');
      await api.close();
      assert.deepEqual([answer.status, answer.body], [200, 'null']);
      assert.match(String(answer.headers['content-type']), /^application\/json/);
    });
  }
});

describe('POST /api/config', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await createApi();
  });
  afterEach(() => api.close());

  async function post(body: unknown): Promise<{ status: number; body: ConfigBody }> {
    const answer = await api.post('/api/config', body);
    const parsed = answer.json() as ConfigBody;
    assert.deepEqual(Object.keys(parsed), ['ok', 'message', 'diff_summary']);
    return { status: answer.status, body: parsed };
  }

  async function assertNothingChanged(): Promise<void> {
    assert.equal(await api.fileText(), SAMPLE);
    assert.deepEqual(api.sent, []);
  }

  it('answers text that is no TOML with where it goes wrong', async () => {
    const { status, body } = await post({ toml: 'a = 1\nb = = 2\n' });
    assert.equal(status, 400);
    assert.equal(body.ok, false);
    assert.match(body.message, /^TOML parse error: .*2/s);
    assert.equal(body.diff_summary, null);
    await assertNothingChanged();
  });

  it('answers an invalid document with what is wrong', async () => {
    const { status, body } = await post({ toml: `${SAMPLE}\n[supervisor]\npol_interval = "3s"\n` });
    assert.equal(status, 400);
    assert.equal(body.ok, false);
    assert.match(body.message, /^Validation error: .*pol_interval/s);
    assert.equal(body.diff_summary, null);
    await assertNothingChanged();
  });

  it('neither writes nor sends a document without a difference, whatever its text', async () => {
    const { status, body } = await post({ toml: `# other text\n${SAMPLE}` });
    assert.equal(status, 200);
    assert.deepEqual(
      [body.ok, body.message, typeof body.diff_summary],
      [true, 'No changes detected', 'string'],
    );
    await assertNothingChanged();
  });

  it('writes the text byte by byte and sends the document', async () => {
    const toml = CHANGED.replaceAll('\n', '\r\n');
    const { status, body } = await post({ toml });
    assert.equal(status, 200);
    assert.deepEqual([body.ok, body.message], [true, 'Config applied successfully']);
    assert.match(String(body.diff_summary), /poll_interval/);
    assert.equal(await api.fileText(), toml);
    assert.equal(api.sent.length, 1);
    assert.equal(api.sent[0]?.command, 'reload');
    assert.equal((api.sent[0]?.args[0] as LoadedConfig | undefined)?.config.supervisor.poll_interval, '3s');
    assert.equal((await stat(api.configFile)).mode & 0o777, 0o600);
  });

  it('answers a failed write with 500 and the difference, and sends nothing', async () => {
    await api.close();
    api = await createApi({
      wrapConfig: (config) =>
        overriding(config, {
          write: async () => {
            throw new Error('no space left on the disk');
          },
        }),
    });
    const { status, body } = await post({ toml: CHANGED });
    assert.equal(status, 500);
    assert.equal(body.ok, false);
    assert.equal(body.message, 'Failed to write config file: no space left on the disk');
    assert.match(String(body.diff_summary), /poll_interval/);
    await assertNothingChanged();
  });

  it('answers a failed send with 500 and the difference; the text is written', async () => {
    api.refusal = 'the daemon is stopping and takes no more commands';
    const { status, body } = await post({ toml: CHANGED });
    assert.equal(status, 500);
    assert.equal(body.ok, false);
    assert.equal(
      body.message,
      'Failed to send reload command: the daemon is stopping and takes no more commands',
    );
    assert.match(String(body.diff_summary), /poll_interval/);
    assert.equal(await api.fileText(), CHANGED);
  });

  it('refuses bodies without a text in toml in its own shape', async () => {
    for (const wrong of [{}, { toml: 5 }, { toml: null }, { toml: ['a'] }, [], 'text', 7, null]) {
      const { status, body } = await post(wrong);
      assert.equal(status, 400, JSON.stringify(wrong));
      assert.equal(body.ok, false);
      assert.equal(body.diff_summary, null);
      assert.ok(body.message.length > 10);
    }
    await assertNothingChanged();
  });

  it('refuses what is no JSON, of another type or too large in its own shape', async () => {
    const cases = [
      { status: 400, headers: { 'content-type': 'application/json' }, body: '{"toml": ' },
      { status: 400, headers: { 'content-type': 'application/json' }, body: '{"__proto__": {}, "toml": ""}' },
      { status: 400, headers: { 'content-type': 'application/json' }, body: '' },
      { status: 400, headers: {}, body: 'connections = []' },
      { status: 415, headers: { 'content-type': 'application/toml' }, body: SAMPLE },
      { status: 415, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'toml=a' },
      {
        status: 413,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ toml: '#'.repeat(1_100_000) }),
      },
    ];
    for (const { status, headers, body } of cases) {
      const answer = await api.call({
        method: 'POST',
        path: '/api/config',
        headers: headers as Record<string, string>,
        body,
      });
      const parsed = answer.json() as ConfigBody;
      assert.equal(answer.status, status, `${JSON.stringify(headers)} ${body.slice(0, 30)}`);
      assert.deepEqual([parsed.ok, parsed.diff_summary, typeof parsed.message], [false, null, 'string']);
    }
    await assertNothingChanged();
  });

  it('keeps the file and the last command alike when many come at once', async () => {
    const intervals = Array.from({ length: 12 }, (_, index) => `${index + 3}s`);
    const answers = await Promise.all(
      intervals.map((interval) => api.post('/api/config', { toml: CHANGED.replace('3s', interval) })),
    );
    assert.deepEqual(
      answers.map((answer) => answer.status),
      intervals.map(() => 200),
    );
    const last = api.sent.at(-1)?.args[0] as LoadedConfig | undefined;
    assert.equal(await api.fileText(), last?.text);
    assert.equal(api.sent.length, intervals.length);
  });

  it('answers a check that breaks down with 500 in its own shape and goes on working', async () => {
    await api.close();
    let isBroken = false;
    api = await createApi({
      wrapConfig: (config) => {
        const check = config.check.bind(config);
        return overriding(config, {
          check: async (text: string) => {
            if (isBroken) throw new Error('broken');
            return check(text, 'http');
          },
        });
      },
    });
    isBroken = true;
    assert.equal((await post({ toml: CHANGED })).status, 500);
    isBroken = false;
    assert.equal((await post({ toml: CHANGED })).status, 200);
  });

  it('reports a folder in place of the file as a failed write', async () => {
    await rm(api.configFile);
    await mkdir(api.configFile);
    const { status, body } = await post({ toml: CHANGED });
    assert.equal(status, 500);
    assert.match(body.message, /^Failed to write config file: ./);
    assert.deepEqual(api.sent, []);
  });
});
