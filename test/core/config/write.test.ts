import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createFileWriter, replaceFile } from '../../../core/config/write.ts';
import { unlessRoot } from '../../runner/skips.ts';

const isRoot = process.getuid?.() === 0;

describe('writing the configuration file', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'mk-write-'));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  function place(name: string): string {
    const own = join(folder, name);
    mkdirSync(own);
    return own;
  }

  it('makes a new file that only its owner may read', async () => {
    const file = join(place('new'), 'config.toml');
    await replaceFile(file, 'a = 1\n');
    assert.deepEqual([readFileSync(file, 'utf8'), statSync(file).mode & 0o7777], ['a = 1\n', 0o600]);
    assert.deepEqual(readdirSync(join(folder, 'new')), ['config.toml']);
  });

  it('keeps mode and owner', async () => {
    const file = join(place('kept'), 'config.toml');
    writeFileSync(file, 'old');
    chmodSync(file, 0o640);
    if (isRoot) chownSync(file, 1234, 4321);
    const old = statSync(file);
    await replaceFile(file, 'new');
    const { mode, uid, gid, ino } = statSync(file);
    assert.deepEqual([mode, uid, gid], [old.mode, old.uid, old.gid]);
    assert.notEqual(ino, old.ino);
  });

  it('replaces what a symbolic link points to, not the link, also when nothing is there yet', async () => {
    const own = place('links');
    mkdirSync(join(own, 'real'));
    symlinkSync('real/config.toml', join(own, 'second'));
    symlinkSync('second', join(own, 'first'));
    await replaceFile(join(own, 'first'), 'one');
    await replaceFile(join(own, 'first'), 'two');
    assert.deepEqual(
      [
        readlinkSync(join(own, 'first')),
        readlinkSync(join(own, 'second')),
        readFileSync(join(own, 'real/config.toml'), 'utf8'),
      ],
      ['second', 'real/config.toml', 'two'],
    );
    assert.deepEqual(readdirSync(join(own, 'real')), ['config.toml']);
    symlinkSync('loop', join(own, 'loop'));
    await assert.rejects(replaceFile(join(own, 'loop'), 'x'), /too many symbolic links/);
  });

  it('has the content on the disk before the name leads to it, and then the name', async (t) => {
    const file = join(place('synced'), 'config.toml');
    writeFileSync(file, 'old');
    const handle = await open(file);
    const prototype = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    const synced: unknown[] = [];
    // eslint-disable-next-line typescript/unbound-method
    const { sync } = prototype;
    t.mock.method(prototype, 'sync', async function record(this: FileHandle) {
      const what = readlinkSync(`/proc/self/fd/${String(this.fd)}`);
      const isFolder = statSync(what).isDirectory();
      // Other tests of this process may still write elsewhere.
      if (what.startsWith(dirname(file)))
        synced.push([
          isFolder ? 'folder' : readFileSync(what, 'utf8'),
          `there: ${readFileSync(file, 'utf8')}`,
        ]);
      await sync.call(this);
    });
    await replaceFile(file, 'new');
    assert.deepEqual(synced, [
      ['new', 'there: old'],
      ['folder', 'there: new'],
    ]);
  });

  it('says what is wrong, and leaves nothing behind', async () => {
    const own = place('wrong');
    mkdirSync(join(own, 'folder'));
    await assert.rejects(
      replaceFile(join(own, 'none', 'config.toml'), 'x'),
      /^Error: write .*: its folder does not exist$/,
    );
    await assert.rejects(replaceFile(join(own, 'folder'), 'x'), /it is not a plain file/);
    assert.deepEqual(readdirSync(own), ['folder']);
  });

  it('leaves what somebody else saves while the new text is brought to the disk', async () => {
    const own = place('meanwhile');
    const file = join(own, 'config.toml');
    writeFileSync(file, 'first');
    let asked = 0;
    const write = createFileWriter(file);
    const before = async (): Promise<void> => {
      asked += 1;
      if (asked === 1) return;
      writeFileSync(file, 'of somebody else');
      await Promise.reject(new Error('it was changed'));
    };
    await assert.rejects(write('second', before), { message: 'it was changed' });
    assert.equal(readFileSync(file, 'utf8'), 'of somebody else');
    assert.deepEqual(readdirSync(own), ['config.toml']);
  });

  it('lets one writer after the other, the last one wins, and a failure stops nobody', async () => {
    const own = place('many');
    const file = join(own, 'config.toml');
    const write = createFileWriter(file);
    const texts = Array.from({ length: 30 }, (_, index) => `${index}\n`.repeat(5_000));
    mkdirSync(file);
    const failed = assert.rejects(write('too early'), /not a plain file/).then(() => {
      rmSync(file, { recursive: true });
    });
    const written = failed.then(() => Promise.all(texts.map((text) => write(text))));
    await failed;
    let reads = 0;
    let isDone = false;
    const reading = (async () => {
      while (!isDone) {
        const text = await readFileText(file);
        // Before the first one is in its place, there is nothing.
        assert.ok(
          text === undefined ? reads === 0 : texts.includes(text),
          'a reader saw half a file, or none',
        );
        if (text !== undefined) reads += 1;
      }
    })();
    await written.finally(() => {
      isDone = true;
    });
    await reading;
    assert.ok(reads > 0);
    assert.equal(readFileSync(file, 'utf8'), texts.at(-1));
    assert.deepEqual(readdirSync(own), ['config.toml']);
  });

  it('leaves one whole document when the process is killed while it writes', async () => {
    const file = join(place('killed'), 'config.toml');
    const module = new URL('../../../core/config/write.js', import.meta.url).href;
    const program =
      `import { replaceFile } from ${JSON.stringify(module)}; ` +
      'for (let n = 0; ; n += 1) { ' +
      `await replaceFile(${JSON.stringify(file)}, (n % 10 + '\\n').repeat(200000)); ` +
      "if (n === 1) console.log('going'); }";
    for (let round = 0; round < 3; round += 1) {
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ended = new Promise((resolve) => {
        child.once('exit', resolve);
      });
      await new Promise((resolve) => {
        child.stdout.once('data', resolve);
      });
      await new Promise((resolve) => {
        setTimeout(resolve, round * 7);
      });
      child.kill('SIGKILL');
      await ended;
      const text = readFileSync(file, 'utf8');
      assert.equal(text, (text[0] + '\n').repeat(200_000));
    }
  });
});

async function readFileText(file: string): Promise<string | undefined> {
  try {
    return await promisify(execFile)('cat', [file], { maxBuffer: 1e7 }).then(({ stdout }) => stdout);
  } catch {
    return undefined;
  }
}

/** A small disk of its own, unmounted whatever happens. */
async function withDisk(use: (mountPoint: string) => Promise<void>): Promise<void> {
  const mountPoint = mkdtempSync(join(tmpdir(), 'mk-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=0700', 'mountkeeper-test', mountPoint]);
    try {
      await use(mountPoint);
    } finally {
      execFileSync('umount', [mountPoint]);
    }
  } finally {
    rmSync(mountPoint, { recursive: true });
  }
}

describe('writing on a disk that refuses', { skip: unlessRoot }, () => {
  it('leaves the old file whole when the disk is full', async () => {
    await withDisk(async (disk) => {
      const file = join(disk, 'config.toml');
      writeFileSync(file, 'old');
      assert.throws(
        () => {
          writeFileSync(join(disk, 'filler'), Buffer.alloc(1_000_000));
        },
        { code: 'ENOSPC' },
      );
      await assert.rejects(replaceFile(file, 'x'.repeat(100_000)), /: no space left on the disk$/);
      assert.equal(readFileSync(file, 'utf8'), 'old');
      assert.deepEqual(readdirSync(disk).toSorted(), ['config.toml', 'filler']);
      rmSync(join(disk, 'filler'));
      await replaceFile(file, 'new');
      assert.equal(readFileSync(file, 'utf8'), 'new');
    });
  });

  it('leaves the old file whole when the disk is read-only', async () => {
    await withDisk(async (disk) => {
      const file = join(disk, 'config.toml');
      writeFileSync(file, 'old');
      execFileSync('mount', ['-o', 'remount,ro', disk]);
      await assert.rejects(replaceFile(file, 'new'), /: the disk is read-only$/);
      assert.equal(readFileSync(file, 'utf8'), 'old');
    });
  });

  it('says what to do when the file is a mount of its own', async () => {
    await withDisk(async (disk) => {
      const file = join(disk, 'config.toml');
      writeFileSync(join(disk, 'source'), 'old');
      writeFileSync(file, '');
      execFileSync('mount', ['--bind', join(disk, 'source'), file]);
      try {
        await assert.rejects(replaceFile(file, 'new'), /bind its folder instead$/);
        assert.equal(readFileSync(file, 'utf8'), 'old');
      } finally {
        execFileSync('umount', [file]);
      }
      assert.deepEqual(readdirSync(disk).toSorted(), ['config.toml', 'source']);
    });
  });
});
