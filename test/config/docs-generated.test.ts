/** The generated pages and files say what the code says: `npm run docs` was run after the last change. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { contractPage } from '../../config/contract-page.ts';
import { pluginPages } from '../../config/plugin-pages.ts';
import { hookKinds } from '../../core/plugins/instance/hook-kinds.ts';

const GENERATE = fileURLToPath(new URL('../../config/generate.js', import.meta.url));
const CONTRACT = fileURLToPath(new URL('../../../core/contract', import.meta.url));

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
    const pages = pluginPages({ plugins: [], native: [], ownCommands: [], contract });
    assert.ok(
      pages.get('docs/reference/hooks.md')?.includes('| `afterCycle` | observe | `()` |  | Something. |'),
    );
    assert.throws(
      () =>
        pluginPages({
          plugins: [],
          native: [],
          ownCommands: [],
          contract: contract.replace('/** Something. */\n  afterCycle', 'afterCycle'),
        }),
      /does not say what the hook afterCycle means/,
    );
  });

  it('have the routes of native plugins among the others, with who brings them', () => {
    const contract = Object.keys(hookKinds)
      .map((hook) => `  /** Something. */\n  ${hook}: { args: []; result: void };\n`)
      .join('');
    const native = ['GET', 'POST'].map((method) => ({
      plugin: 'auth',
      method,
      path: '/sign-in',
      access: undefined,
      isForAnybody: true,
    }));
    const page = pluginPages({ plugins: [], native, ownCommands: [], contract }).get('docs/reference/api.md');
    for (const method of ['GET', 'POST'])
      assert.ok(page?.includes(`| ${method} | \`/sign-in\` | [auth](../../plugins/auth/README.md) |`), page);
  });

  it('are refused when the contract does not say what a hook or a service is', async () => {
    const files = new Map(
      await Promise.all(
        (await readdir(CONTRACT)).map(
          async (name) => [name, await readFile(path.join(CONTRACT, name), 'utf8')] as const,
        ),
      ),
    );
    const page = contractPage({ plugins: [], files });
    for (const hook of Object.keys(hookKinds))
      assert.match(page, new RegExp(`^\\| <a id="hook-\\w+"></a>\`${hook}\` \\| .* \\| .+ \\|$`, 'm'));
    assert.match(
      page,
      /^\| <a id="command-notify"><\/a>`notify` \| `\(event: NotificationEvent\)` \|  \| yes \| For whoever/m,
    );
    assert.match(
      page,
      /^\| <a id="service-store"><\/a>`store` \| \[`StoreService`\]\(#storeservice\) \| core \| yes \|$/m,
    );
    assert.match(page, /^\| event \| value \| given by \| meaning \|$/m);
    const without = (file: string, text: string) =>
      new Map([...files, [file, (files.get(file) ?? '').replace(text, '')]]);
    assert.throws(
      () => contractPage({ plugins: [], files: without('hooks.ts', '  afterCycle:') }),
      /does not say what afterCycle is/,
    );
    assert.throws(
      () => contractPage({ plugins: [], files: without('platform.ts', 'export interface Clock') }),
      /has no interface Clock/,
    );
  });
});
