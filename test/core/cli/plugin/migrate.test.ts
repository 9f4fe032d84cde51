/** `plugin migrate` with a real plugin in a process of its own: shown, written whole, or not at all. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { migratePlugin } from '../../../../core/cli/plugin/migrate-command.ts';
import { openOffline } from '../../../../core/cli/offline.ts';

const SOURCE = `import { definePlugin, Joi, secret } from 'mountkeeper';
export default definePlugin({ name: 'garden', version: '2.0.0', apiVersion: 1, description: 'A garden.',
  config: {
    schema: Joi.object({ beds: Joi.number().default(1), word: Joi.string().default(''), key: secret().default('') }),
    migrate({ bed_count: beds, ...rest }) {
      if (beds === 13) throw new Error('thirteen beds bring bad luck');
      return { beds: beds === 14 ? 'many' : beds, ...rest, ...(beds === 15 && { enabled: false }) };
    },
  },
  register(ctx) { ctx.status('garden', () => 1); } });
`;
const BEFORE = `# by hand
connections = []
[supervisor]
state_dir = "state"
[plugins]
dirs = ["plugins"]

[plugins.garden]
enabled = true # since May
word = "roses" # the best
key = "open sesame"
bed_count = COUNT
`;

describe('plugin migrate', { timeout: 120_000 }, () => {
  let folder: string;
  let file: string;
  before(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-migrate-')));
    file = join(folder, 'config.toml');
    await mkdir(join(folder, 'plugins/garden'), { recursive: true });
    await writeFile(join(folder, 'plugins/garden/package.json'), '{ "type": "module", "main": "index.js" }');
    await writeFile(join(folder, 'plugins/garden/index.js'), SOURCE);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** What is printed with its exit code; an error after an exclamation mark. */
  const migrate = async (name: string, isAgreed: boolean): Promise<readonly string[]> => {
    const lines: string[] = [];
    const cli = {
      print: (line: string) => lines.push(line),
      printError: (line: string) => lines.push(`! ${line}`),
    };
    const code = await migratePlugin(name, { configFile: file, isAgreed }, cli as never);
    return [...lines, String(code)];
  };
  const write = (beds: number): Promise<void> => writeFile(file, BEFORE.replace('COUNT', String(beds)));

  it('shows the new form, then writes it with the comments, and finds nothing to do after that', async () => {
    await write(3);
    const offline = await openOffline(file);
    const check = await offline.config.loadFile();
    await offline.close();
    assert.ok(check.ok, 'a daemon starts all the same');
    assert.match(
      check.loaded.warnings.join('\n'),
      /"mountkeeper plugin migrate garden" shows it in the new form/,
    );
    const shown = await migrate('garden', false);
    assert.ok(shown.includes('+ beds = 3'), shown.join('\n'));
    assert.ok(!shown.some((line) => line.includes('sesame')), 'no secret is shown');
    assert.equal(shown.at(-1), '0');
    assert.equal(await readFile(file, 'utf8'), BEFORE.replace('COUNT', '3'));
    assert.deepEqual((await migrate('garden', true)).slice(-2), [`written to ${file}`, '0']);
    assert.equal(await readFile(file, 'utf8'), BEFORE.replace('bed_count = COUNT', 'beds = 3'));
    assert.deepEqual(await migrate('garden', true), [
      '[plugins.garden] is in the form of the version that is there; nothing is to be done',
      '0',
    ]);
  });

  it('leaves the file as it is where the migration throws, or gives what cannot be used', async () => {
    const reasons: readonly (readonly [number, RegExp])[] = [
      [
        13,
        /^! garden is not migrated, and nothing is changed: .*thirteen beds bring bad luck \(at index\.js:\d+:\d+\)$/,
      ],
      [14, /what its migration gave does not fit its version 2\.0\.0: beds must be a number$/],
      [15, /its migration gave the key "enabled", which is the core's own$/],
    ];
    for (const [count, reason] of reasons) {
      await write(count);
      const [line = '', code] = await migrate('garden', true);
      assert.match(line, reason);
      assert.equal(code, '1');
      assert.equal(await readFile(file, 'utf8'), BEFORE.replace('COUNT', String(count)));
    }
  });

  it('neither obeys nor writes a file that others can change, which root would write for them', async () => {
    await write(3);
    await chmod(file, 0o666);
    const lines = await migrate('garden', true);
    await chmod(file, 0o600);
    assert.match(
      lines.join('\n'),
      /config\.toml may be written by everybody, .*; run this as the user .*\n1$/,
    );
    assert.equal(await readFile(file, 'utf8'), BEFORE.replace('COUNT', '3'));
  });

  it('says what is to be done where an older version is there, without a migration', async () => {
    await write(3);
    const older = SOURCE.replace(/migrate\([^]*?\n {4}\},\n/, '').replaceAll('2.0.0', '1.0.0');
    await writeFile(join(folder, 'plugins/garden/index.js'), older);
    const [line = ''] = await migrate('garden', true);
    assert.match(
      line,
      /its version 1\.0\.0 \(bed_count is not allowed\).*install the version that the table was written for/,
    );
    const [off = ''] = await migrate('pond', true);
    assert.match(off, /^! pond is not migrated, .*: it is off, or not there/);
  });
});
