/** The configuration over HTTP beyond GET and POST: check, versions, history, and secrets that stay. */
import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const PASSWORD = 'correct horse';
const TEXT = `# ours\n${SAMPLE}\n[web]\nusername = "ada" # me\npassword = "${PASSWORD}"\n`;
const authorization = `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`;
const interval = (text: string, seconds: number): string =>
  `${text}\n[supervisor]\npoll_interval = "${seconds}s"\n`;

interface Verdict {
  ok: boolean;
  message: string;
  diff_summary: string | null;
  problems: { message: string; path?: string; line?: number }[];
  changes: { path: string; tier: string }[];
  interrupts: { shares: string[]; servers: boolean; restart: boolean; text: string } | null;
}
interface Version {
  version: string;
  by: string;
  summary: string;
  at: string;
}

let api: ApiFixture;
let clock: ManualClock;

const post = async <T>(path: string, body: unknown, headers: Record<string, string> = {}) => {
  const answer = await api.post(path, body, { authorization, ...headers });
  return { status: answer.status, etag: answer.headers.etag, body: answer.json() as T };
};
const apply = (toml: string, headers: Record<string, string> = {}) =>
  post<Verdict>('/api/config', { toml, keep_secrets: true }, headers);
const history = async () =>
  ((await api.get('/api/config/history', { authorization })).json() as { versions: Version[] }).versions;
const etag = async () => String((await api.get('/api/config', { authorization })).headers.etag);
const changes = () =>
  api.host.service('configChanges') as import('../../core/contract/config-changes.ts').ConfigChanges;

function withApi(): void {
  beforeEach(async () => {
    clock = createManualClock();
    api = await createApi({ toml: TEXT, clock });
  });
  afterEach(() => api.close());
}

describe('POST /api/config/check', () => {
  withApi();

  it('says what would change and whom it interrupts, and applies nothing', async () => {
    const { status, body } = await post<Verdict>('/api/config/check', {
      toml: TEXT.replace('remote_path = "/photos"', 'remote_path = "/other"'),
    });
    assert.equal(status, 200);
    assert.deepEqual(
      [body.ok, body.diff_summary, body.changes.map(({ path, tier }) => [path, tier])],
      [true, 'shares.photos.remote_path: "/photos" → "/other"', [['shares.photos.remote_path', 'per-share']]],
    );
    assert.deepEqual(body.interrupts, {
      shares: ['photos'],
      servers: false,
      restart: false,
      text: 'Interrupts whoever works on: photos.',
    });
    assert.deepEqual([await api.fileText(), api.sent], [TEXT, []]);
  });

  it('names the shares of a connection, and everybody for what is global', async () => {
    const connection = await post<Verdict>('/api/config/check', {
      toml: TEXT.replace('type = "local"', 'type = "sftp"'),
    });
    assert.deepEqual(connection.body.interrupts?.shares, ['photos', '照片 2024']);
    const global = await post<Verdict>('/api/config/check', { toml: `${TEXT}\n[cache]\nmax_size = "1G"\n` });
    assert.deepEqual(global.body.interrupts?.shares, ['photos', '照片 2024']);
    const live = await post<Verdict>('/api/config/check', { toml: interval(TEXT, 3) });
    assert.deepEqual(live.body.interrupts, {
      shares: [],
      servers: false,
      restart: false,
      text: 'Interrupts nobody.',
    });
  });

  it('answers every problem with its key and line', async () => {
    const { status, body } = await post<Verdict>('/api/config/check', {
      toml: `${TEXT}\n[supervisor]\npoll_interval = "soon"\n[cache]\nmax_size = 7\n`,
    });
    assert.equal(status, 200);
    assert.deepEqual(
      [body.ok, body.problems.map(({ path }) => path), body.interrupts],
      [false, ['supervisor.poll_interval', 'cache.max_size'], null],
    );
    assert.ok(body.problems.every(({ line }) => typeof line === 'number'));
    const parse = await post<Verdict>('/api/config/check', { toml: 'a = = 1' });
    assert.match(parse.body.message, /^TOML parse error/);
  });

  it('takes no other body than POST /api/config', async () => {
    assert.equal((await post('/api/config/check', { toml: 7 })).status, 400);
    assert.equal((await api.post('/api/config/check', { toml: TEXT })).status, 401, 'the password guards it');
  });
});

describe('versions', () => {
  withApi();

  it('let one of two administrators through, and tell the second what has changed', async () => {
    const read = await etag();
    const first = await apply(interval(TEXT, 3), { 'if-match': read });
    assert.equal(first.status, 200);
    const second = await apply(interval(TEXT, 4), { 'if-match': read });
    assert.equal(second.status, 412);
    assert.match(second.body.message, /has been changed since you read it/);
    assert.equal(second.body.diff_summary, 'supervisor.poll_interval: "2s" → "3s"');
    assert.equal(await api.fileText(), interval(TEXT, 3));
    assert.equal(second.etag, first.etag);
    assert.equal((await apply(interval(TEXT, 4), { 'if-match': String(second.etag) })).status, 200);
  });

  it('change with every character of the text, from whatever side', async () => {
    const read = await etag();
    const noted = `${TEXT}# a note of somebody with an editor\n`;
    await writeFile(api.configFile, noted);
    await api.apply(noted);
    assert.notEqual(await etag(), read);
    assert.equal(
      (await apply(interval(TEXT, 3), { 'if-match': read })).status,
      412,
      'the note would be lost',
    );
  });

  it('say nothing about the text: they are made up', async () => {
    assert.notEqual(await etag(), '""');
    const other = await createApi({ toml: TEXT });
    const tag = String((await other.get('/api/config', { authorization })).headers.etag);
    await other.close();
    assert.notEqual(tag, await etag());
  });
});

describe('history', () => {
  withApi();

  it('keeps what was applied, by whom and what it changed, readable by the daemon alone', async () => {
    await apply(interval(TEXT, 3));
    const edited = interval(TEXT, 4);
    await writeFile(api.configFile, edited);
    await api.apply(edited);
    const versions = await history();
    assert.deepEqual(
      versions.map(({ by, summary }) => [by, summary]),
      [
        ['file', 'supervisor.poll_interval: "3s" → "4s"'],
        ['api', 'supervisor.poll_interval: "2s" → "3s"'],
        ['file', ''],
      ],
    );
    await api.host.stop('shutdown');
    const file = join(api.folder, 'state/config-history.json');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.equal((JSON.parse(await readFile(file, 'utf8')) as { versions: unknown[] }).versions.length, 3);
  });

  it('gives a version without its secrets, and puts it back by an ordinary POST', async () => {
    await apply(interval(TEXT, 3));
    const [, former] = await history();
    const answer = await api.get(`/api/config/history/${former?.version}`, { authorization });
    const { toml, restoring } = answer.json() as { toml: string; restoring: Verdict };
    assert.ok(!answer.body.includes(PASSWORD));
    assert.equal(restoring.diff_summary, 'supervisor.poll_interval: "3s" → "2s"');
    assert.equal((await apply(toml)).body.ok, true);
    assert.equal(await api.fileText(), TEXT, 'notes and secrets are back');
    assert.equal((await api.get('/api/config/history/none', { authorization })).status, 404);
  });

  it('is bounded', async () => {
    for (let seconds = 3; seconds < 28; seconds += 1) await apply(interval(TEXT, seconds));
    assert.equal((await history()).length, 20);
  });

  it('refuses a mask that nobody asked to keep, and one that stands for nothing', async () => {
    const masked = changes().text(changes().version) ?? '';
    assert.match(
      (await post<Verdict>('/api/config', { toml: masked })).body.message,
      /^Validation error: .*holds the mask/,
    );
    const elsewhere = masked.replace('password =', 'username2 =');
    assert.equal((await apply(elsewhere)).status, 400);
  });
});
