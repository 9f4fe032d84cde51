import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LogLines } from '../../../../../core/plugins/runner/process/log-lines.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';

describe("a plugin's lines in the log of the daemon", () => {
  /** Logs as often as the daemon takes lines, for so many seconds. Gives what came of it. */
  function flooded(seconds: number, write: (lines: LogLines) => void) {
    let nowMs = 0;
    const { log, entries } = collectLog();
    const lines = new LogLines({ monotonic: () => nowMs } as never, log);
    for (let second = 0; second < seconds; second += 1, nowMs += 1_001)
      for (let index = 0; index < 60; index += 1) write(lines);
    lines.ended();
    const isWarning = ({ msg }: Record<string, unknown>): boolean =>
      msg !== 'x' && String(msg).includes('left out');
    return {
      characters: JSON.stringify(entries).length,
      written: entries.filter((one) => !isWarning(one)).length,
      leftOut: entries.filter(isWarning).reduce((sum, { lines: count }) => sum + Number(count), 0),
    };
  }

  it('are fifty a second, and what is left out is counted', () => {
    const { written, leftOut } = flooded(10, (lines) =>
      lines.logged({ level: 'info', message: 'x', fields: {} }),
    );
    // What the last second left out is told when it ends.
    assert.deepEqual([written, leftOut], [500, 100]);
  });

  const LONG = 'y'.repeat(20_000);
  for (const [what, write] of Object.entries({
    messages: (lines: LogLines) => lines.logged({ level: 'info', message: LONG, fields: {} }),
    fields: (lines: LogLines) =>
      lines.logged({ level: 'info', message: 'x', fields: { long: LONG.slice(0, 8_000) } }),
    'printed lines': (lines: LogLines) => lines.printed(LONG),
  }))
    it(`are a megabyte in a minute, however long they are: ${what}`, () => {
      const { characters, written, leftOut } = flooded(120, write);
      assert.ok(characters > 1_900_000 && characters < 2_600_000, `${characters} characters in two minutes`);
      assert.equal(written + leftOut, 120 * 60);
    });
});
