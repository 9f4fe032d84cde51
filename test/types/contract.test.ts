import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** Errors of one file, compiled outside the project as a stranger's plugin would be: `line: message`. */
async function compile(t: TestContext, source: string): Promise<readonly number[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'mountkeeper-types-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(path.join(folder, 'node_modules'));
  await symlink(root, path.join(folder, 'node_modules/mountkeeper'), 'dir');
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(path.join(folder, 'plugin.ts'), source);
  await writeFile(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'es2023',
        module: 'nodenext',
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: true,
        noEmit: true,
        types: ['node'],
        typeRoots: [path.join(root, 'node_modules/@types')],
      },
      files: ['plugin.ts'],
    }),
  );
  const output = await new Promise<string>((resolve) => {
    execFile(
      process.execPath,
      [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'],
      { timeout: 60_000, cwd: folder },
      (_, stdout, stderr) => resolve(stdout + stderr),
    );
  });
  const lines = [...output.matchAll(/^plugin\.ts\((\d+),\d+\): error/gm)].map((match) => Number(match[1]));
  assert.equal(output.split('\n').filter((line) => line.includes('error TS')).length, lines.length, output);
  return lines;
}

describe('types of the plugin contract', () => {
  it('accept every right line for a stranger, and refuse every wrong one', async (t) => {
    const source = await readFile(path.join(root, 'test/types/contract-types.ts'), 'utf8');
    assert.deepEqual(await compile(t, source), []);
    const wrong = source
      .split('\n')
      .flatMap((line, index) => (line.includes('@ts-expect-error') ? [index + 2] : []));
    assert.deepEqual(await compile(t, source.replaceAll('@ts-expect-error', '')), wrong);
  });
});
