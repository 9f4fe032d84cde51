import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { isAlive } from '../support/platform/processes.ts';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { until } from '../support/platform/wait.ts';

const WHEN_CUT = new URL('../support/package/when-cut.js', import.meta.url).href;

describe('a test process that is cut short', () => {
  let scratch: Scratch;
  before(async () => (scratch = await createScratch('when-cut')));
  after(() => scratch.close());

  /** What it has started and the folder that it would remove, once it has ended by the signal. */
  const cutBy = async (
    signal: NodeJS.Signals,
  ): Promise<{ readonly child: number; readonly folder: string }> => {
    const [folder, file] = [scratch.path(signal), scratch.path(`${signal}.mjs`)];
    await mkdir(folder);
    await writeFile(
      file,
      `import { rmSync } from 'node:fs';
      import { onCut, spawnTied } from ${JSON.stringify(WHEN_CUT)};
      onCut(() => rmSync(${JSON.stringify(folder)}, { recursive: true }));
      const said = ['ignore', 'inherit', 'ignore'];
      spawnTied('sh', ['-c', 'echo $$; exec sleep 600'], said);`,
    );
    const test = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [said] = (await once(test.stdout, 'data')) as [Buffer];
    const ended = once(test, 'exit');
    test.kill(signal);
    await ended;
    return { child: Number(said.toString()), folder };
  };

  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    it(`by ${signal} ends what it has started`, async () => {
      const { child } = await cutBy(signal);
      assert.ok(child > 1);
      await until('it has ended', () => !isAlive(child), { timeoutMs: 20_000 });
    });

  it('removes what it has made', async () => {
    const { folder } = await cutBy('SIGINT');
    assert.equal(existsSync(folder), false);
  });
});
