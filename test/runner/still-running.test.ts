import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';

const WATCHER = new URL('./still-running.js', import.meta.url).href;

interface Limits {
  readonly limitMs?: number;
  readonly idleMs?: number;
  readonly idleLimitMs?: number;
}

describe('a test process that does not end', () => {
  let scratch: Scratch;
  before(async () => (scratch = await createScratch('still-running')));
  after(() => scratch.close());

  /** Runs a test file of these lines with the limits, by default too long to be reached. */
  const runs = async (lines: readonly string[], limits: Limits): Promise<[number | null, string]> => {
    const file = scratch.path(`${lines.length}-${Object.keys(limits).join('-')}.mjs`);
    const patience = { name: 'daemon/x', limitMs: 60_000, idleMs: 60_000, idleLimitMs: 60_000, ...limits };
    await writeFile(
      file,
      [
        `import { sayWhatIsStillRunning } from ${JSON.stringify(WATCHER)};`,
        "import { createServer } from 'node:net';",
        "import { describe, it } from 'node:test';",
        `sayWhatIsStillRunning({ ...${JSON.stringify(patience)}, say: (line) => console.error(line) });`,
        ...lines,
      ].join('\n'),
    );
    const child = spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    return [code as number | null, said];
  };

  const LEAVES = "it('leaves', () => void createServer().listen(0, '127.0.0.1'));";
  const FOR_EVER = "it('waits', () => new Promise((resolve) => setTimeout(resolve, 60_000)));";

  it('says after its last test what keeps it, and ends when that lasts', async () => {
    const limits = { idleMs: 1_000, idleLimitMs: 2_000 };
    const [code, said] = await runs([`describe('a', () => { ${LEAVES} });`], limits);
    assert.equal(code, 1);
    const [first, second] = [/: no test has run for 1 s/, /: ended, no test has run for 2 s/].map(
      ({ source }) =>
        `daemon/x${source}; the last test was 'a > leaves'; open: (PipeWrap.*, )?TCPServerWrap\n`,
    );
    assert.match(said, new RegExp(`^${first}${second}$`));
  });

  it('ends at its limit, and says which test was running, not that none was', async () => {
    const limits = { limitMs: 3_000, idleMs: 1_000, idleLimitMs: 1_500 };
    const [code, said] = await runs([`describe('a', () => { ${FOR_EVER} });`], limits);
    assert.equal(code, 1);
    assert.match(
      said,
      /^daemon\/x: ended, not done after 3 s; 'a > waits' was running; .*open: .*Timeout\n$/,
    );
  });

  it('is not watched when it ends by itself', async () => {
    const lines = ["it('is short', () => undefined);", "it('fails', () => { throw new Error('x'); });"];
    assert.deepEqual(await runs(lines, {}), [1, '']);
    assert.deepEqual(await runs(lines.slice(0, 1), {}), [0, '']);
  });
});
