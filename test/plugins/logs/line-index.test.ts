import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { appendFile, mkdtemp, open, rename, rm, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { createLineIndex } from '../../../plugins/logs/line-index.ts';
import type { LineIndex } from '../../../plugins/logs/line-index.ts';

/** The contract's meaning of a line, in the simplest words. */
function linesOf(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(10, from);
    const line = bytes.subarray(from, end === -1 ? bytes.length : end);
    const hasCr = end !== -1 && line.at(-1) === 13;
    lines.push((hasCr ? line.subarray(0, -1) : line).toString('utf8'));
    from = end === -1 ? bytes.length : end + 1;
  }
  return lines;
}

const indexOf = (file: string): LineIndex =>
  createLineIndex(() => open(file, constants.O_RDONLY | constants.O_NONBLOCK));
const everything = (index: LineIndex) => index.read((total) => ({ skip: 0, count: total }));

describe('the line index', () => {
  let folder: string;
  let file: string;
  let index: LineIndex;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-lines-'));
    file = join(folder, 'log');
    index = indexOf(file);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('ends a line at LF, drops one CR before it, and counts a last line without LF', async () => {
    const cases: [string, string[]][] = [
      ['', []],
      ['a', ['a']],
      ['a\n', ['a']],
      ['a\n\n', ['a', '']],
      ['\n', ['']],
      ['a\r\nb\r', ['a', 'b\r']],
      ['a\r\r\n', ['a\r']],
      ['é词\n', ['é词']],
      ['\r\n', ['']],
    ];
    for (const [text, expected] of cases) {
      await writeFile(file, text);
      assert.deepEqual(
        await everything(indexOf(file)),
        { totalLines: expected.length, entries: expected },
        JSON.stringify(text),
      );
    }
  });

  it('shows what is no UTF-8 as replacement characters', async () => {
    await writeFile(file, Buffer.from([0x61, 0xff, 0xfe, 0x0a, 0x62, 0x0a]));
    assert.deepEqual((await everything(index)).entries, ['a\ufffd\ufffd', 'b']);
  });

  it('finds lines on both sides of its marks', async () => {
    const lines = Array.from({ length: 5_000 }, (_, number) => `${number} ${'x'.repeat(number % 90)}`);
    await writeFile(file, `${lines.join('\n')}\n`);
    for (const skip of [0, 1, 1_023, 1_024, 1_025, 2_047, 2_048, 4_096, 4_999, 5_000, 6_000]) {
      const page = await index.read(() => ({ skip, count: 3 }));
      assert.deepEqual(page, { totalLines: 5_000, entries: lines.slice(skip, skip + 3) }, String(skip));
    }
  });

  it('gives exactly what a plain reading gives, whatever is written, cut, replaced or asked for', async () => {
    const text = fc.oneof(
      fc.constantFrom('\n', '\r\n', 'a\n', '\n\n', 'line\n'.repeat(1_100)),
      fc.string({ maxLength: 40 }),
    );
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: fc.constant('append' as const), text }) },
      fc.record({
        kind: fc.constantFrom('overwrite', 'replace', 'recreate', 'cut') as fc.Arbitrary<
          'overwrite' | 'replace' | 'recreate' | 'cut'
        >,
        text,
      }),
    );
    const ask = fc.record({ skip: fc.nat(2_500), count: fc.nat(1_500) });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(step, ask), { maxLength: 8 }), async (steps) => {
        await writeFile(file, '');
        let content: Buffer = Buffer.alloc(0);
        for (const [{ kind, text: part }, wanted] of steps) {
          content = await change(file, kind, { content, part: Buffer.from(part) });
          const expected = linesOf(content);
          const page = await index.read(() => wanted);
          assert.deepEqual(page, {
            totalLines: expected.length,
            entries: expected.slice(wanted.skip, wanted.skip + wanted.count),
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it('serves many readers during the first scan from one scan', async () => {
    await writeFile(file, 'line\n'.repeat(200_000));
    const pages = await Promise.all(
      Array.from({ length: 10 }, (_, number) => index.read(() => ({ skip: number * 1_000, count: 1 }))),
    );
    for (const page of pages) assert.deepEqual(page, { totalLines: 200_000, entries: ['line'] });
  });

  it('cuts a line that has no end, and ends an answer that grows too large', async () => {
    await writeFile(file, `${'x'.repeat(300_000)}\nshort\n`);
    const [long, short] = (await everything(index)).entries;
    assert.deepEqual([long?.length, long?.at(-1), short], [65_537, '…', 'short']);
    await writeFile(file, `${'y'.repeat(60_000)}\n`.repeat(400));
    const page = await everything(index);
    assert.equal(page.totalLines, 400);
    assert.ok(page.entries.length > 250 && page.entries.length < 300, String(page.entries.length));
  });

  it('rejects a missing file, a folder and a named pipe at once', async () => {
    await assert.rejects(everything(index), { code: 'ENOENT' });
    await assert.rejects(everything(indexOf(folder)), /no regular file|EISDIR/);
    await promisify(execFile)('mkfifo', [join(folder, 'pipe')]);
    await assert.rejects(everything(indexOf(join(folder, 'pipe'))), /no regular file/);
  });
});

interface Change {
  readonly content: Buffer;
  readonly part: Buffer;
}

async function change(
  file: string,
  kind: 'append' | 'overwrite' | 'replace' | 'recreate' | 'cut',
  { content, part }: Change,
): Promise<Buffer> {
  switch (kind) {
    case 'append':
      await appendFile(file, part);
      return Buffer.concat([content, part]);
    case 'overwrite':
      await writeFile(file, part);
      return part;
    case 'replace':
      await writeFile(`${file}.new`, part);
      await rename(`${file}.new`, file);
      return part;
    case 'recreate':
      await unlink(file);
      await writeFile(file, part);
      return part;
    case 'cut': {
      const size = Math.floor(content.length / 2);
      await truncate(file, size);
      return content.subarray(0, size);
    }
  }
}
