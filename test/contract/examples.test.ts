/**
 * The example plugins in docs/examples, as a stranger would have them: their own tests pass beside an installed
 * Mountkeeper, `plugin check` finds nothing to mend, and those that can be carried keep the contract in a process
 * of their own, and in a shared one, too.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { contractSuite } from 'mountkeeper/testing';
import { MAIN } from '../support/daemon/daemon.ts';
import { publishedFiles } from '../support/package/published-files.ts';
import { EXAMPLES, layExampleForAuthor, PROJECT } from '../support/plugins/examples.ts';

const run = promisify(execFile);
const LONGEST_MS = 120_000;
/** It provides an exporter. */
const INSIDE: ReadonlySet<string> = new Set(['listing']);

void describe('the example plugins', () => {
  const room = mkdtempSync(path.join(tmpdir(), 'mountkeeper-examples-'));
  after(() => rmSync(room, { recursive: true, force: true }));
  /** Without what the runner of these tests tells its children. */
  const env = { PATH: process.env['PATH'], HOME: room, LANG: 'C.UTF-8' };

  void it('are five', () =>
    assert.deepEqual(EXAMPLES, ['listing', 'matrix', 'nas-space', 'quiet-hours', 'speed-chart']));

  for (const name of EXAMPLES) {
    const folder = layExampleForAuthor(name, room);
    void it(`${name} passes its own tests`, async () => {
      const options = { cwd: folder, env, timeout: LONGEST_MS };
      const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap'], options).catch(
        (error: { stdout: string }) => assert.fail(error.stdout),
      );
      assert.match(stdout, /^# fail 0$/m);
      assert.match(stdout, /leaves nothing behind/);
    });
    void it(`${name} has nothing to mend, by plugin check`, async () => {
      const agreed = INSIDE.has(name) ? ['--yes'] : [];
      const { stdout } = await run(process.execPath, [MAIN, 'plugin', 'check', folder, ...agreed], {
        env,
        timeout: LONGEST_MS,
      }).catch((error: { stdout: string; stderr: string }) => assert.fail(error.stdout + error.stderr));
      assert.match(stdout, new RegExp(`${name} is fine`));
      assert.doesNotMatch(stdout, /before others use it/);
      assert.match(stdout, INSIDE.has(name) ? /runs: inside the daemon/ : /runs: in a process of its own/);
    });
    if (INSIDE.has(name)) continue;
    contractSuite(folder, { isolation: 'own' });
    contractSuite(folder, { isolation: 'shared' });
  }

  describe('and one that has just been made', () => {
    execFileSync(process.execPath, [MAIN, 'plugin', 'new', 'lights', '--ts'], { cwd: room, env });
    contractSuite(path.join(room, 'lights'), { isolation: 'own' });
  });

  void it('are published with the documents', async () => {
    const published = await publishedFiles();
    for (const name of EXAMPLES)
      for (const file of ['README.md', 'package.json', 'sample.toml', 'contract.test.js'])
        assert.ok(published.has(`docs/examples/${name}/${file}`), `${name}/${file}`);
  });

  void it('the one in TypeScript is right by a strict compiler', async () => {
    const compiler = path.join(PROJECT, 'node_modules/typescript/bin/tsc');
    await run(process.execPath, [compiler], {
      cwd: path.join(room, 'speed-chart'),
      timeout: LONGEST_MS,
    }).catch((error: { stdout: string }) => assert.fail(error.stdout));
  });
});
