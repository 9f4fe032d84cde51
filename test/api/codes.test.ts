/** Signing in with a one-time code beside the password: who is asked for it, and what is refused without. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../core/testing/manual-clock.ts';
import { makeHash } from '../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../plugins/auth/token.ts';
import { codeOf, stepAt, STEP_MS, toBase32 } from '../../plugins/auth/totp/totp.ts';
import { createApi, SAMPLE } from './fixture.ts';
import type { Answer, ApiFixture } from './fixture.ts';

const KEY = Buffer.alloc(20, 'ada');
const OWN_KEY = Buffer.alloc(20, 'own');
const TOKEN = makeToken();

describe('a one-time code', () => {
  let api: ApiFixture;
  let clock: ManualClock;
  let hash: string;
  const text = (web: string, user: string): string =>
    [
      SAMPLE,
      `[web]\npassword = "pw"\n${web}`,
      `[[web.users]]\nname = "ada"\npassword_hash = "${hash}"\nrole = "admin"\n${user}`,
      `[[web.users]]\nname = "bob"\npassword_hash = "${hash}"\nrole = "admin"`,
      `[[web.tokens]]\nname = "script"\ntoken_hash = "${hashToken(TOKEN)}"\nrole = "admin"`,
    ].join('\n');
  const ofAda = (): string => text('', `totp_secret = "${toBase32(KEY)}"`);

  beforeEach(async () => {
    hash = await makeHash('word');
    clock = createManualClock();
    api = await createApi({ toml: ofAda(), clock });
    // What a former daemon may have taken is over.
    await clock.advance(2 * STEP_MS);
  });
  afterEach(() => api.close());

  const code = (key = KEY): string => codeOf(key, stepAt(clock.now()));
  const signIn = (username: string, password: string, fields: Record<string, string> = {}): Promise<Answer> =>
    api.call({
      method: 'POST',
      path: '/sign-in',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ username, password, ...fields }).toString(),
    });
  const status = async (...given: Parameters<typeof signIn>): Promise<number> =>
    (await signIn(...given)).status;
  const byBasic = async (username: string, password: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    return (await api.get('/api/status', { authorization })).status;
  };

  it('is asked for on the page as soon as anybody has one, and lets nobody in without the password', async () => {
    const field = /<input name="code" [^>]*autocomplete="one-time-code"/;
    assert.match((await api.get('/sign-in')).body, field);
    assert.equal(await status('ada', 'wrong', { code: code() }), 401);
    assert.equal(await status('ada', 'word'), 401);
    assert.equal(await status('ada', 'word', { code: '' }), 401);
    const wrong = await signIn('ada', 'word', { code: '000000' });
    assert.match(wrong.body, /password or code is wrong/);
    assert.equal(await status('ada', 'word', { code: code() }), 303, 'a wrong password has not used it up');
    await api.apply(text('', ''));
    assert.doesNotMatch((await api.get('/sign-in')).body, field);
    assert.equal(await status('ada', 'word'), 303);
  });

  it('counts once, also when it is sent twice at once', async () => {
    const twice = await Promise.all([1, 2, 3].map(() => status('ada', 'word', { code: code() })));
    assert.deepEqual(
      twice.toSorted((a, b) => a - b),
      [303, 401, 401],
    );
    await clock.advance(STEP_MS);
    assert.equal(await status('ada', 'word', { code: code() }), 303);
  });

  it('is wanted of no one else, and no code of another is taken', async () => {
    assert.deepEqual([await status('bob', 'word'), await status('admin', 'pw')], [303, 303]);
    assert.equal(await status('bob', 'word', { code: '123456' }), 303);
    assert.equal(await status('ada', 'word', { code: code(OWN_KEY) }), 401);
  });

  it('keeps Basic with the password alone out, and tokens in', async () => {
    assert.deepEqual([await byBasic('ada', 'word'), await byBasic('bob', 'word')], [401, 200]);
    const byToken = await api.get('/api/config', { authorization: `Bearer ${TOKEN}` });
    assert.equal(byToken.status, 200);
    assert.ok(!byToken.body.includes(toBase32(KEY)), 'the secret is not shown');
    await api.apply(text('', ''));
    assert.equal(await byBasic('ada', 'word'), 200, 'that it was refused before does not count');
  });

  it('can be asked for of web.password, too, by a reference, and is when that leads nowhere', async () => {
    const file = join(api.folder, 'totp');
    await writeFile(file, `${toBase32(OWN_KEY).toLowerCase()}\n`);
    const { headers } = await signIn('admin', 'pw');
    const cookie = { cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
    assert.equal((await api.get('/api/status', cookie)).status, 200);
    await api.apply(text(`totp_secret = { file = ${JSON.stringify(file)} }`, ''));
    assert.equal((await api.get('/api/status', cookie)).status, 401, 'who came without a code signs in anew');
    assert.deepEqual([await byBasic('admin', 'pw'), await status('admin', 'pw')], [401, 401]);
    assert.equal(await status('admin', 'pw', { code: code(OWN_KEY) }), 303);
    await writeFile(file, 'no secret');
    await clock.advance(STEP_MS);
    assert.equal(await status('admin', 'pw', { code: code(OWN_KEY) }), 401);
    assert.match(JSON.stringify(api.logLines), /totp_secret is none/);
  });

  it('is not taken from a text that is no secret', async () => {
    const sent = await api.post(
      '/api/config',
      { toml: text('totp_secret = "123456"', '') },
      { authorization: `Bearer ${TOKEN}` },
    );
    assert.equal(sent.status, 400);
    assert.match(sent.body, /Validation error: .*web\.totp_secret.*is no secret that/);
  });
});
