/** The completions that come with the package, in the shells that they are for. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { grammarOf } from '../../config/command-grammar.ts';

const FOLDER = fileURLToPath(new URL('../../../config/completions/', import.meta.url));
/** Stands in for the program: names shares as the daemon does, and shows what it was called with. */
const PROGRAM = [
  'mountkeeper() { if [ "$1" = status ]; then',
  `printf '{"shares":[{"name":"photos","health":"x"},{"name":"my files"},{"name":"phones"}]}'`,
  `else echo "<$*>"; fi; }`,
].join('\n');

/** In a home of its own: fish makes folders in it, also in one that is not there. */
async function run(command: string, args: readonly string[], input = ''): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'mountkeeper-completions-'));
  try {
    return await runAt(home, [command, ...args], input);
  } finally {
    await rm(home, { recursive: true });
  }
}

async function runAt(
  home: string,
  [command = '', ...args]: readonly string[],
  input: string,
): Promise<string> {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], LANG: 'C.UTF-8', TERM: 'dumb', HOME: home },
    timeout: 20_000,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => (said += piece.toString()));
  // One that needs nothing may have ended before it is told that nothing comes.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  await once(child, 'close');
  return said;
}

/** What bash offers for the last of these words. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const script =
    `${PROGRAM}\nsource "${FOLDER}mountkeeper.bash"\n` +
    'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _mountkeeper\n' +
    `printf '%s\\n' "\${COMPREPLY[@]}"`;
  const said = await run('bash', ['--norc', '-c', script, 'bash', 'mountkeeper', ...words]);
  return said.split('\n').filter((line) => line !== '');
}

describe('completions for bash', () => {
  it('offer subcommands, words, options and shares where they may stand', async () => {
    assert.deepEqual(await offered('re'), ['receipt', 'reconnect', 'refresh']);
    assert.deepEqual(await offered('--config', 'x.toml', 'recon'), ['reconnect']);
    assert.deepEqual(await offered('preset', ''), ['photographer', 'video', 'office']);
    assert.deepEqual(await offered('plugin', 'log'), ['log-level']);
    assert.deepEqual(await offered('help', 'wa'), ['wait', 'warmup']);
    assert.deepEqual(await offered('wait', '--'), [
      '--synced',
      '--timeout',
      '--config',
      '--url',
      '--json',
      '--help',
    ]);
    assert.deepEqual(await offered('reconnect', ''), ['photos', String.raw`my\ files`, 'phones']);
    assert.deepEqual(await offered('reconnect', 'pho'), ['photos', 'phones']);
  });

  it('offer files and the values of options where those are known', async () => {
    const files = [
      'completions/_mountkeeper',
      'completions/mountkeeper.bash',
      'completions/mountkeeper.fish',
    ];
    const below = `${FOLDER}../completions/`;
    for (const words of [['import', 'fstab', '/mnt', '--from'], ['init', '--password-file'], ['support']])
      assert.deepEqual(
        (await offered(...words, below)).map((path) => path.slice(FOLDER.length + 3)).toSorted(),
        files,
        words.join(' '),
      );
    assert.deepEqual(await offered('init', '--kind', ''), ['smb', 'sftp', 'webdav', 'ftp']);
    assert.deepEqual(await offered('init', '--kind', 's'), ['smb', 'sftp']);
  });

  it('offer nothing where nothing is known', async () => {
    assert.deepEqual(await offered('reconnect', 'photos', ''), []);
    assert.deepEqual(await offered('wait', '--timeout', ''), []);
    assert.deepEqual(await offered('status', ''), []);
    assert.deepEqual(await offered('nonsense', ''), []);
  });

  it('complete what somebody types', async () => {
    const typed =
      `PS1='$ '\n${PROGRAM}\nsource "${FOLDER}mountkeeper.bash"\nmountkeeper reco\tphot\t\n` +
      'mountkeeper verify my\t\nexit\n';
    const said = await run('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], typed);
    assert.match(said, /<reconnect photos>/);
    assert.match(said, /<verify my files>/);
  });
});

describe('completions for other shells', () => {
  it('are read by fish, which offers them with their descriptions', async () => {
    const ask = async (line: string): Promise<string> =>
      run('fish', [
        '--no-config',
        '-c',
        `function mountkeeper; echo '{"name":"photos"}'; end; ` +
          `source "${FOLDER}mountkeeper.fish"; complete -C '${line}'`,
      ]);
    assert.match(await ask('mountkeeper recon'), /^reconnect\tUnmount a share/);
    assert.match(await ask('mountkeeper reconnect pho'), /^photos\n/);
    assert.match(await ask('mountkeeper wait --sy'), /^--synced/);
    assert.match(await ask('mountkeeper preset '), /^office\nphotographer\nvideo\n/);
  });

  it('are read by zsh', async () => {
    assert.equal(await run('zsh', ['-f', '-n', `${FOLDER}_mountkeeper`]), '');
    assert.match(await readFile(`${FOLDER}_mountkeeper`, 'utf8'), /^#compdef mountkeeper\n/);
  });
});

describe('the grammar of a usage line', () => {
  const of = (usage: string) => {
    const { options, first } = grammarOf({ name: 'x', usage, summary: '' });
    return [first, options.map(({ name, hasValue }) => (hasValue ? `${name}=` : name)).join(' ')];
  };
  for (const [usage, first, options] of [
    ['', 'nothing', ''],
    ['SHARE [PATH]', 'share', ''],
    ['[SHARE [PATH]] [--newer-than AGE] [--dry-run]', 'share', '--newer-than= --dry-run'],
    ['[SHARE] [--send | --pause DURATION | --resume]', 'share', '--send --pause= --resume'],
    ['list | new NAME | check DIR', { words: ['list', 'new', 'check'] }, ''],
    ['photographer|video', { words: ['photographer', 'video'] }, ''],
    ['--synced [--timeout 10m]', 'nothing', '--synced --timeout='],
    ['[-f] [--lines N]', 'nothing', '-f --lines='],
    ['[UP DOWN]', 'nothing', ''],
    ['[FOLDER]', 'folder', ''],
    ['log-level NAME | add [--yes] | go [--yes]', { words: ['log-level', 'add', 'go'] }, '--yes'],
  ] as const)
    it(`knows ${JSON.stringify(usage)}`, () => assert.deepEqual(of(usage), [first, options]));
});
