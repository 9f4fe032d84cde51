/** The manual pages that come with the package. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { manual, prose, word } from '../../config/roff.ts';
import { OWN_COMMANDS } from '../../core/cli/usage.ts';

const FOLDER = fileURLToPath(new URL('../../../config/man/', import.meta.url));
const run = promisify(execFile);

/** What mandoc finds, but for pages that are not installed here, which are not this page's fault. */
async function lint(file: string): Promise<readonly string[]> {
  const said = await run('mandoc', ['-T', 'lint', file]).catch((error: { stdout: string }) => error);
  return said.stdout
    .split('\n')
    .filter((line) => line !== '' && !line.includes('referenced manual not found'));
}

describe('the manual pages', () => {
  it('are three, and mandoc finds nothing in them', async () => {
    const names = (await readdir(FOLDER)).sort((a, b) => (a < b ? -1 : 1));
    assert.deepEqual(names, ['mountkeeper.1', 'mountkeeper.8', 'mountkeeper.toml.5']);
    for (const name of names) assert.deepEqual(await lint(`${FOLDER}${name}`), [], name);
  });

  it('say what the tables say', async () => {
    const { stdout } = await run('mandoc', ['-T', 'ascii', `${FOLDER}mountkeeper.1`]);
    const plain = stdout
      .split('\b')
      .map((piece, index, all) => (index < all.length - 1 ? piece.slice(0, -1) : piece))
      .join('')
      .replaceAll(/\s+/g, ' ');
    for (const { name, summary } of OWN_COMMANDS)
      assert.ok(plain.includes(` ${name}`) && plain.includes(summary), name);
    const keys = await readFile(`${FOLDER}mountkeeper.toml.5`, 'utf8');
    for (const key of ['poll_interval', 'write_back', 'password', 'remote_path'])
      assert.ok(keys.includes(`.It Ic "\\&${key}`), key);
  });
});

describe('texts in manual pages', () => {
  it('are never taken for orders', () => {
    assert.equal(prose('.so /etc/passwd'), String.raw`\&.so /etc/passwd`);
    assert.equal(prose(String.raw`a \n b`), String.raw`a \en b`);
    assert.equal(prose('One. Two (as in "x."). Three'), 'One.\nTwo (as in "x.").\nThree');
    assert.equal(word('a "b" --c'), String.raw`"\&a \(dqb\(dq \-\-c\&"`);
  });

  it('are broken between words, and an order does not begin by it', () => {
    const text = `${'x'.repeat(76)} .Dd`;
    const page = manual({
      title: 'x',
      section: 1,
      names: ['x'],
      about: 'x',
      parts: ['.Sh DESCRIPTION', text],
    });
    assert.ok(page.includes(`${'x'.repeat(76)}\n\\&.Dd`));
  });
});
