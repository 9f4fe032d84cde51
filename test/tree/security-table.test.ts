/** SECURITY.md says of each line of its table which test shows it, and that test is there. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

describe('the table of SECURITY.md', () => {
  it('names a test that exists in every line', async () => {
    const text = await readFile(`${PROJECT}SECURITY.md`, 'utf8');
    const lines = text
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .slice(1);
    assert.ok(lines.length > 7);
    for (const line of lines) {
      const [who, , shownBy = ''] = line
        .split('|')
        .slice(1)
        .map((cell) => cell.trim());
      const tests = shownBy.split(', ').map((name) => name.replaceAll('`', ''));
      for (const name of tests)
        assert.ok(name !== '' && existsSync(`${PROJECT}test/${name}.test.ts`), `${who}: ${name}`);
    }
  });
});
