import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CredentialDigest, parseBasicCredentials } from '../../../../core/sdk/http/basic-credentials.ts';

function header(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

describe('HTTP Basic credentials', () => {
  it('are read as UTF-8, else as Latin-1, and split at the first colon', () => {
    assert.deepEqual(parseBasicCredentials(header('a', 'b:c')), { username: 'a', password: 'b:c' });
    assert.deepEqual(parseBasicCredentials(header('用户', 'é')), { username: '用户', password: 'é' });
    assert.deepEqual(parseBasicCredentials(header('a', 'é'.normalize('NFD'))), {
      username: 'a',
      password: 'é',
    });
    assert.deepEqual(parseBasicCredentials(`basic ${Buffer.from('a:\xe9', 'latin1').toString('base64')}`), {
      username: 'a',
      password: 'é',
    });
    const wrong = [
      undefined,
      '',
      'Basic',
      'Basic a b',
      'Bearer YTpi',
      `Basic ${Buffer.from('ab').toString('base64')}`,
      `Basic ${'A'.repeat(5_000)}`,
    ];
    for (const text of wrong) assert.equal(parseBasicCredentials(text), undefined, text);
  });

  it('are read in no time, however long and crooked the header is', () => {
    const started = process.cpuUsage();
    for (const piece of [' ', 'A', '=', 'A=', ' A', 'basic ']) {
      const text = piece.repeat(1_048_576 / piece.length);
      for (const value of [text, `basic ${text}`, `basic ${text.slice(0, 4_000)}!`])
        parseBasicCredentials(value);
    }
    const { user } = process.cpuUsage(started);
    assert.ok(user < 500_000, `${user} µs of processor`);
  });

  it('have digests that tell where the name ends, and other ones under each key', () => {
    const digest = new CredentialDigest();
    const of = (username: string, password: string): string =>
      digest.of({ username, password }).toString('hex');
    assert.equal(of('ad', 'minpw'), of('ad', 'minpw'));
    for (const [username, password] of [
      ['adm', 'inpw'],
      ['', 'adminpw'],
      ['adminpw', ''],
      ['ad:m', 'inpw'],
      ['2:ad', 'minpw'],
    ] as const) {
      assert.notEqual(of(username, password), of('ad', 'minpw'), username);
    }
    assert.notEqual(of('a', '1:bc'), of('a1:b', 'c'));
    assert.equal(of('é', 'é'), of('é'.normalize('NFD'), 'é'.normalize('NFD')));
    assert.notEqual(
      of('a', 'b'),
      new CredentialDigest().of({ username: 'a', password: 'b' }).toString('hex'),
    );
  });
});
