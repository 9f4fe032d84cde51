import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseArguments } from '../../../core/cli/arguments.js';

const NOTHING = {
  command: undefined,
  rest: [],
  config: undefined,
  url: undefined,
  json: false,
  help: false,
  version: false,
  safeMode: false,
};

describe('arguments', () => {
  it('finds the subcommand wherever the options stand', () => {
    const expected = { ...NOTHING, command: 'status', config: '/etc/a.toml', json: true };
    for (const line of [
      'status --config /etc/a.toml --json',
      '--config /etc/a.toml status --json',
      '--json --config=/etc/a.toml status',
    ]) {
      assert.deepEqual(parseArguments(line.split(' ')), expected);
    }
  });

  it('leaves what it does not know to the subcommand', () => {
    assert.deepEqual(parseArguments(['logs', '-f', '--lines', '5', '照片 2024']), {
      ...NOTHING,
      command: 'logs',
      rest: ['-f', '--lines', '5', '照片 2024'],
    });
  });

  it('takes nothing after -- for its own', () => {
    assert.deepEqual(parseArguments(['reconnect', '--', '--json', '--config']), {
      ...NOTHING,
      command: 'reconnect',
      rest: ['--json', '--config'],
    });
  });

  it('takes no option for a subcommand', () => {
    assert.deepEqual(parseArguments(['--foo', 'status']), { ...NOTHING, rest: ['--foo', 'status'] });
    assert.deepEqual(parseArguments([]), NOTHING);
  });

  it('knows the flags', () => {
    assert.equal(parseArguments(['-h']).help, true);
    assert.equal(parseArguments(['status', '--help']).help, true);
    assert.equal(parseArguments(['--version']).version, true);
  });

  it('keeps an equals sign inside the value', () => {
    assert.equal(parseArguments(['--url=http://host/?a=b']).url, 'http://host/?a=b');
  });

  for (const line of ['--config', '--config=', '--url --json', 'status --url']) {
    it(`refuses '${line}', which lacks a value`, () =>
      assert.throws(() => parseArguments(line.split(' ')), /needs a value/));
  }
});
