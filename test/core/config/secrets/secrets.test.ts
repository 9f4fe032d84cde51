import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createSecrets, isReference } from '../../../../core/config/secrets/secrets.ts';

const folder = mkdtempSync(join(tmpdir(), 'mk-secrets-'));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

describe('secrets', () => {
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const secrets = createSecrets({
    env: { WORD: 'from the environment', EMPTY: '', CREDENTIALS_DIRECTORY: folder },
  });

  it('are found where they are said to be', () => {
    file('nas', 'credential\n');
    const found = [
      'as it is',
      '',
      { env: 'WORD' },
      { file: file('pw', 'two\nlines\n') },
      { file: file('crlf', 'x\r\n') },
      { credential: 'nas' },
    ].map((each) => secrets.resolve(each));
    assert.deepEqual(found, ['as it is', '', 'from the environment', 'two\nlines', 'x', 'credential']);
  });

  it('are never taken as empty when a reference leads to nothing', () => {
    assert.throws(() => secrets.resolve({ env: 'NOT_SET' }), {
      message: 'the environment variable NOT_SET is not set',
    });
    assert.throws(() => secrets.resolve({ env: 'EMPTY' }), {
      message: 'the environment variable EMPTY is empty',
    });
    assert.throws(() => secrets.resolve({ file: file('empty', '\n') }), /empty is empty$/);
    assert.throws(
      () => secrets.resolve({ file: join(folder, 'none') }),
      /none cannot be read: there is no such file$/,
    );
    assert.throws(() => secrets.resolve({ credential: 'other' }), {
      message: 'the credential other cannot be read: there is no such file',
    });
    assert.throws(
      () => createSecrets({ env: {} }).resolve({ credential: 'nas' }),
      /\$CREDENTIALS_DIRECTORY is not set/,
    );
  });

  it('are not read from pipes, folders, huge files or from outside the credentials', () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    mkdirSync(join(folder, 'folder'));
    for (const path of [pipe, join(folder, 'folder'), '/dev/zero', file('huge', 'x'.repeat(70_000))]) {
      assert.throws(() => secrets.resolve({ file: path }), /not a plain file of at most 64 KiB/, path);
    }
    assert.throws(() => secrets.resolve({ file: 'relative' }), /not an absolute path/);
    for (const name of ['../nas', 'a/b', '..'])
      assert.throws(() => secrets.resolve({ credential: name }), /cannot be the name of a credential/);
  });

  it('are told from references by their shape', () => {
    assert.deepEqual([{ env: 'A' }, { file: 'a' }, { credential: 'a' }].map(isReference), [true, true, true]);
    assert.deepEqual(
      ['x', {}, { env: 1 }, { env: 'A', file: 'b' }, { other: 'a' }, null, [{ env: 'A' }]].map(isReference),
      Array(7).fill(false),
    );
  });
});
