/** The generated pages and files say what the code says: `npm run docs` was run after the last change. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pluginPages } from '../../config/plugin-pages.ts';
import { hookKinds } from '../../core/plugins/hooks.ts';

const GENERATE = fileURLToPath(new URL('../../config/generate.js', import.meta.url));

describe('generated documents', () => {
  it('are those that the code would write now', async () => {
    const said = await new Promise<string>((resolve) => {
      execFile(process.execPath, [GENERATE, '--check'], { timeout: 60_000 }, (error, _stdout, stderr) =>
        resolve(error ? stderr || error.message : ''),
      );
    });
    assert.equal(said, '');
  });

  it('are refused when a hook has no meaning in the contract', () => {
    const contract = Object.keys(hookKinds)
      .map((hook) => `  /** Something. */\n  ${hook}: { args: []; result: void };\n`)
      .join('');
    const pages = pluginPages({ plugins: [], ownCommands: [], contract });
    assert.ok(
      pages.get('docs/reference/hooks.md')?.includes('| `afterCycle` | observe | `()` |  | Something. |'),
    );
    assert.throws(
      () =>
        pluginPages({
          plugins: [],
          ownCommands: [],
          contract: contract.replace('/** Something. */\n  afterCycle', 'afterCycle'),
        }),
      /does not say what the hook afterCycle means/,
    );
  });
});
