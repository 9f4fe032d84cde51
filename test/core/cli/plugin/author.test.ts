import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { CliContext } from 'mountkeeper';
import { checkPlugin, renderPluginTable } from '../../../../core/cli/plugin/author.js';
import { scaffold } from '../../../../core/cli/plugin/scaffold.js';
import type { Language } from '../../../../core/cli/plugin/scaffold.js';
import { packageDir } from '../../../../core/plugins/discovery/stage.js';

function terminal(): { cli: CliContext; out: string[]; err: string[] } {
  const out: string[] = [];
  const err: string[] = [];
  const cli = {
    json: false,
    print: (text: string) => void out.push(text),
    printError: (text: string) => void err.push(text),
  } as unknown as CliContext;
  return { cli, out, err };
}

async function scratch(t: TestContext): Promise<string> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'mountkeeper-cli-')));
  t.after(() => rm(root, { recursive: true, force: true }));
  return root;
}

async function scaffolded(
  root: string,
  changes: Record<string, string | undefined> = {},
  language: Language = 'js',
): Promise<string> {
  const folder = path.join(root, 'garden');
  await mkdir(folder);
  for (const [file, content] of Object.entries({ ...scaffold('garden', '0.1.0', language), ...changes })) {
    if (content !== undefined) await writeFile(path.join(folder, file), content);
  }
  return folder;
}

function run(file: string, cwd: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, [file], { cwd, env, timeout: 30_000 });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    child.once('close', (code) => resolve({ code, output }));
  });
}

describe('plugin list', () => {
  it('shows the reason where there is one and marks strangers', () => {
    const base = { version: '1.0.0', description: 'Waters.', effects: [] };
    assert.deepEqual(
      renderPluginTable([
        { ...base, name: 'garden', state: 'active', reason: undefined, thirdParty: true, isolation: 'own' },
        { ...base, name: 'mount', state: 'failed', reason: 'no rclone', thirdParty: false },
        {
          name: 'pond',
          version: '',
          description: '',
          state: 'invalid',
          reason: 'it cannot be loaded',
          third_party: true,
        },
      ]),
      [
        ['plugin', 'version', 'state', 'process', 'about'],
        ['garden *', '1.0.0', 'active', 'its own', 'Waters.'],
        ['mount', '1.0.0', 'failed', 'daemon', 'no rclone'],
        ['pond *', '', 'invalid', 'daemon', 'it cannot be loaded'],
      ],
    );
  });
});

for (const language of ['js', 'ts'] as const)
  describe(`a scaffolded plugin in ${language}`, () => {
    it('passes the check, which says what it contributes', async (t) => {
      const { cli, out, err } = terminal();
      assert.equal(await checkPlugin(await scaffolded(await scratch(t), {}, language), false, cli), 0);
      assert.deepEqual(err, []);
      assert.deepEqual(out, [
        'garden 0.1.0: The plugin garden for Mountkeeper.',
        '  hooks: afterMount',
        '  routes: GET /ext/garden/greeting',
        '  dashboard: garden (card)',
        '  effects: a process of its own',
        '  runs: in a process of its own',
        '  may: read the status',
        'garden is fine',
      ]);
    });

    it('keeps the contract by the test it brings', async (t) => {
      const root = await scratch(t);
      const folder = await scaffolded(root, {}, language);
      await mkdir(path.join(root, 'node_modules'));
      await symlink(packageDir, path.join(root, 'node_modules/mountkeeper'), 'dir');
      const { code, output } = await run('contract.test.js', folder);
      assert.equal(code, 0, output);
      assert.match(output, /# pass 5/);
    });

    if (language === 'ts')
      it('has right types, which its compiler checks', async (t) => {
        const root = await scratch(t);
        const folder = await scaffolded(root, {}, language);
        await mkdir(path.join(root, 'node_modules/@types'), { recursive: true });
        for (const name of ['mountkeeper', '@types/node'])
          await symlink(
            name === 'mountkeeper' ? packageDir : path.join(packageDir, 'node_modules', name),
            path.join(root, 'node_modules', name),
            'dir',
          );
        const compiler = path.join(packageDir, 'node_modules/typescript/bin/tsc');
        assert.deepEqual(await run(compiler, folder), { code: 0, output: '' });
        const entry = path.join(folder, 'index.ts');
        await writeFile(entry, (await readFile(entry, 'utf8')).replace("'afterMount'", "'afterMounting'"));
        assert.match(
          (await run(compiler, folder)).output,
          /^index\.ts\(\d+,\d+\): error TS\d+: .*"afterMounting"/m,
        );
      });
  });

describe('plugin check', () => {
  it('says everything there is to mend', async (t) => {
    const { cli, out, err } = terminal();
    const index = scaffold('garden', '0.1.0')
      ['index.js']!.replace(".description('What is shown, and said when a share is mounted.')", '')
      .replace(
        "ctx.tap('afterMount'",
        "if (globalThis.again) ctx.tap('afterUnmount', () => {});\n" +
          "    globalThis.again = true;\n    ctx.tap('afterMount'",
      );
    const folder = await scaffolded(await scratch(t), {
      'index.js': index,
      'README.md': '# Garden\n\n## Configuration\n',
      'sample.toml': '[plugins.garden]\ngreting = "hi"\n',
    });
    t.after(() => {
      delete (globalThis as { again?: boolean }).again;
    });
    assert.equal(await checkPlugin(folder, false, cli), 1);
    for (const sentence of [
      /before others use it: .*must begin with "# garden"/,
      /before others use it: .*must have the sections/,
    ])
      assert.match(out.join('\n'), sentence);
    const text = err.join('\n');
    for (const sentence of [
      /the key plugins\.garden\.greeting lacks \.description\(\)/,
      /sample\.toml is not valid: .*greting/,
    ]) {
      assert.match(text, sentence);
    }
  });

  it('lets a plugin of two files pass, and says what it lacks before others use it', async (t) => {
    const { cli, out, err } = terminal();
    const folder = await scaffolded(await scratch(t));
    for (const paper of ['README.md', 'sample.toml']) await rm(path.join(folder, paper));
    assert.equal(await checkPlugin(folder, false, cli), 0);
    assert.deepEqual(err, []);
    assert.deepEqual(out.slice(-3), [
      'before others use it: README.md is missing',
      'before others use it: sample.toml is missing; it shows users a working configuration',
      'garden is fine',
    ]);
  });

  it('tells an author of a permission that is no more, and what to do', async (t) => {
    const { cli, out } = terminal();
    const mountkeeper = { apiVersion: 1, permissions: ['read-status', 'change-config'] };
    const manifest = JSON.stringify({
      name: 'garden',
      version: '0.1.0',
      type: 'module',
      main: 'index.js',
      mountkeeper,
    });
    const folder = await scaffolded(await scratch(t), { 'package.json': manifest });
    assert.equal(await checkPlugin(folder, false, cli), 0);
    assert.ok(out.includes('  may: read the status'), out.join('\n'));
    assert.match(
      out.join('\n'),
      /^before others use it: package\.json asks for the permission "change-config", .*; take it out$/m,
    );
  });

  it('refuses what cannot be carried, unless its sample vouches for it', async (t) => {
    const { cli, out, err } = terminal();
    const index = scaffold('garden', '0.1.0')['index.js']!.replace(
      "ctx.tap('afterMount'",
      "ctx.provide('gardener', () => ({}));\n    ctx.tap('afterMount'",
    );
    const folder = await scaffolded(await scratch(t), { 'index.js': index });
    assert.equal(await checkPlugin(folder, false, cli), 1);
    assert.match(
      err.join('\n'),
      /^garden: it cannot run in a process of its own: ctx\.provide\(\) cannot be carried, .*set isolation = "none"/,
    );
    await writeFile(
      path.join(folder, 'sample.toml'),
      '[plugins.garden]\nenabled = true\nisolation = "none"\ngreeting = "hello"\n',
    );
    out.length = err.length = 0;
    assert.equal(await checkPlugin(folder, true, cli), 0);
    const closing = [
      '  runs: inside the daemon',
      '  may: do everything: it runs inside the daemon',
      'garden is fine',
    ];
    assert.deepEqual([err, out.slice(-3)], [[], closing]);
  });

  it('runs none of its code with the rights of whoever asks, unless sample and asker say so', async (t) => {
    const { cli, err } = terminal();
    const root = await scratch(t);
    const trace = path.join(root, 'trace');
    const index = `import { writeFileSync } from 'node:fs';
try {
  writeFileSync(${JSON.stringify(trace)}, '');
} catch {
  // It may not.
}
${scaffold('garden', '0.1.0')['index.js']}`;
    const sample = (more: string): string =>
      `[plugins.garden]\nenabled = true\n${more}\ngreeting = "hello"\n`;
    const folder = await scaffolded(root, { 'index.js': index, 'sample.toml': sample('') });
    assert.equal(await checkPlugin(folder, true, cli), 0, err.join('\n'));
    assert.equal(existsSync(trace), false, 'it was imported by the command itself');
    await writeFile(path.join(folder, 'sample.toml'), sample('isolation = "none"'));
    assert.equal(await checkPlugin(folder, false, cli), 1);
    assert.match(err.join('\n'), /^garden: its sample\.toml says isolation = "none", .* check \S+ --yes$/);
    assert.equal(existsSync(trace), false, 'its sample was enough');
    assert.equal(await checkPlugin(folder, true, cli), 0);
    assert.equal(existsSync(trace), true);
  });

  it('says why a plugin cannot be loaded at all', async (t) => {
    const { cli, err } = terminal();
    const folder = await scaffolded(await scratch(t), { 'index.js': 'export default {' });
    assert.equal(await checkPlugin(folder, false, cli), 1);
    assert.match(err.join(), /garden: it cannot be loaded: SyntaxError: .*garden\/index\.js:1\)/);
  });
});

describe('the contract suite', () => {
  it('fails a plugin that leaves timers, servers or children behind, or lacks its papers', async (t) => {
    const root = await scratch(t);
    const index = scaffold('garden', '0.1.0')
      ['index.js']!.replace('import {', "import { spawn } from 'node:child_process';\nimport {")
      .replace(
        'register(ctx) {',
        `register(ctx) {
    ctx.effect('leaky', () => { ctx.use('clock').after(60_000, () => {}); spawn('sleep', ['20']); return () => {}; });
    ctx.tap('afterMount', () => {}, Math.random());`,
      );
    const folder = await scaffolded(root, { 'index.js': index, 'README.md': undefined });
    for (const paper of ['README.md', 'sample.toml']) await rm(path.join(folder, paper), { force: true });
    await mkdir(path.join(root, 'node_modules'));
    await symlink(packageDir, path.join(root, 'node_modules/mountkeeper'), 'dir');
    await writeFile(
      path.join(folder, 'contract.test.js'),
      `${await readFile(path.join(folder, 'contract.test.js'), 'utf8')}
import { after } from 'node:test';
import { readFileSync } from 'node:fs';
after(() => {
  const children = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8');
  for (const pid of children.split(' ').filter(Boolean)) process.kill(Number(pid));
});\n`,
    );
    const { code, output } = await run('contract.test.js', folder);
    assert.equal(code, 1);
    for (const name of [
      'has a README',
      'brings a sample',
      'declares the same twice',
      'leaves nothing behind',
    ])
      assert.match(output, new RegExp(`not ok \\d - ${name}`));
    assert.match(output, /1 timers are left/);
  });

  it('fails a plugin that leaves a child process behind', async (t) => {
    const root = await scratch(t);
    const index = scaffold('garden', '0.1.0')
      ['index.js']!.replace('import {', "import { spawn } from 'node:child_process';\nimport {")
      .replace(
        'register(ctx) {',
        "register(ctx) {\n    ctx.effect('leaky', () => { spawn('sleep', ['20']).unref(); return () => {}; });",
      );
    const folder = await scaffolded(root, { 'index.js': index });
    await mkdir(path.join(root, 'node_modules'));
    await symlink(packageDir, path.join(root, 'node_modules/mountkeeper'), 'dir');
    await writeFile(
      path.join(folder, 'contract.test.js'),
      `import { contractSuite } from 'mountkeeper/testing';
import { after } from 'node:test';
import { readFileSync } from 'node:fs';
contractSuite(import.meta.dirname);
after(() => {
  const children = readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8');
  for (const pid of children.split(' ').filter(Boolean)) process.kill(Number(pid));
});\n`,
    );
    const { code, output } = await run('contract.test.js', folder);
    assert.equal(code, 1);
    assert.match(output, /this was not released[^]*child process/);
  });
});
