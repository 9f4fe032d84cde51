import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTerminal, formatTable } from '../../../core/cli/terminal.js';
import { displayWidth } from '../../../core/cli/wrap.js';

function screen(isTTY: boolean, columns?: number) {
  const written: string[] = [];
  const stream = {
    isTTY,
    columns,
    write: (text: string) => written.push(text),
  } as unknown as NodeJS.WriteStream;
  let nowMs = 0;
  return {
    written,
    terminal: createTerminal({ stdout: stream, stderr: stream, now: () => nowMs }),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('terminal', () => {
  it('aligns columns, wide characters counting double', () => {
    assert.equal(
      formatTable([
        ['SHARE', 'HEALTH'],
        ['照片', 'healthy'],
        ['a', 'failed'],
      ]),
      'SHARE  HEALTH\n照片   healthy\na      failed',
    );
  });

  it('counts what takes no room as nothing', () => {
    assert.deepEqual(['e\u0301', '가', '\u200bx', '😀'].map(displayWidth), [1, 2, 1, 2]);
  });

  it("keeps a cell on its line and out of the terminal's control", () => {
    assert.equal(formatTable([['a\nb', '\x1b[2Jc']]), 'a b   [2Jc');
  });

  it('breaks the last column where the terminal ends, and nothing elsewhere', () => {
    const rows = [
      ['plugin', 'about'],
      ['logs', 'it waits for the service that nobody provides'],
    ];
    const [shown, piped] = [screen(true, 34), screen(false, 34)];
    for (const { terminal } of [shown, piped]) terminal.table(rows);
    assert.deepEqual(shown.written, [
      'plugin  about\nlogs    it waits for the service\n        that nobody provides\n',
    ]);
    assert.deepEqual(piped.written, [
      'plugin  about\nlogs    it waits for the service that nobody provides\n',
    ]);
  });

  it('leaves no blanks at the end of a line', () => {
    assert.equal(
      formatTable([
        ['a', 'long'],
        ['b', ''],
      ]),
      'a  long\nb',
    );
  });

  it('redraws progress in place and ends it before the next line', () => {
    const { terminal, written } = screen(true);
    terminal.progress('1 of 2');
    terminal.progress('2 of 2');
    terminal.print('done');
    assert.deepEqual(written, ['\r\x1b[K1 of 2', '\r\x1b[K2 of 2', '\n', 'done\n']);
  });

  it('cuts progress to what can be redrawn', () => {
    const { terminal, written } = screen(true, 10);
    terminal.progress('照片照片照片照片');
    assert.deepEqual(written, ['\r\x1b[K照片照片']);
  });

  it('lists progress at most once a second where there is no terminal', () => {
    const { terminal, written, pass } = screen(false);
    terminal.progress('1');
    pass(999);
    terminal.progress('2');
    pass(1);
    terminal.progress('3');
    assert.deepEqual(written, ['1\n', '3\n']);
  });

  it('lists progress that stands still once where there is no terminal', () => {
    const { terminal, written, pass } = screen(false);
    for (const text of ['a', 'a', 'b', 'b', 'a']) {
      terminal.progress(text);
      pass(1000);
    }
    assert.deepEqual(written, ['a\n', 'b\n', 'a\n']);
  });

  it('prints to a terminal what cannot steer it, and elsewhere what there is', () => {
    const [shown, piped] = [screen(true), screen(false)];
    for (const { terminal } of [shown, piped]) terminal.print('a\tb\n\x1b]0;title\x07');
    assert.deepEqual(shown.written, ['a\tb\n\ufffd]0;title\ufffd\n']);
    assert.deepEqual(piped.written, ['a\tb\n\x1b]0;title\x07\n']);
  });
});
