/** `mountkeeper token new` as it is run, and the tokens that it makes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readToml } from '../../../core/sdk/index.ts';
import type { CliContext } from '../../../core/contract/cli.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { bearerOf, findToken, hashToken, makeToken } from '../../../plugins/auth/token.ts';
import { tokenCommand } from '../../../plugins/auth/token-command.ts';
import { SAMPLE, createApi } from '../../api/fixture.ts';

const NOW = Date.parse('2026-11-23T10:00:00Z');

async function run(args: readonly string[], json = false) {
  const [printed, errors]: [string[], string[]] = [[], []];
  const clock = { ...createManualClock(), now: () => NOW };
  const cli = {
    args,
    json,
    clock,
    print: (text: string) => void printed.push(text),
    printError: (text: string) => void errors.push(text),
  } as unknown as CliContext;
  const code = await tokenCommand.run(cli);
  return { code, printed, errors };
}

describe('mountkeeper token new', () => {
  it('prints the token once, and lines of the configuration that let it in', async () => {
    const { code, printed, errors } = await run(['new', 'backup', '--role', 'viewer', '--expires', '90d']);
    const [token = ''] = printed;
    assert.deepEqual([code, printed.length], [0, 1]);
    assert.match(token, /^mk_[A-Za-z0-9_-]{43}$/);
    const toml = errors.at(-1) ?? '';
    assert.ok(!errors.join('').includes(token), 'the token stands nowhere else');
    assert.deepEqual(readToml(toml), {
      web: {
        tokens: [
          {
            name: 'backup',
            token_hash: hashToken(token),
            role: 'viewer',
            expires: '2027-02-21T10:00:00Z',
          },
        ],
      },
    });
    const api = await createApi({ toml: `${SAMPLE}\n${toml}\n` });
    const [right, none] = [
      await api.get('/api/status', { authorization: `bearer ${token}` }),
      await api.get('/'),
    ];
    await api.close();
    assert.deepEqual([right.status, none.status], [200, 401]);
  });

  it('takes verbs and shares, and gives machines the same as JSON', async () => {
    const args = [
      'new',
      'x',
      '--verb',
      'reconnect',
      '--verb',
      'status',
      '--share',
      'photos',
      '--share',
      'b c',
    ];
    const { code, printed } = await run(args, true);
    const { token, entry, toml } = JSON.parse(printed[0] ?? '') as {
      token: string;
      entry: object;
      toml: string;
    };
    assert.equal(code, 0);
    assert.deepEqual(entry, {
      name: 'x',
      token_hash: hashToken(token),
      verbs: ['reconnect', 'status'],
      shares: ['photos', 'b c'],
    });
    assert.deepEqual(readToml(toml), { web: { tokens: [entry] } });
  });

  it('refuses what the configuration would refuse, and makes nothing', async () => {
    for (const args of [
      [],
      ['new'],
      ['old', 'x', '--role', 'viewer'],
      ['new', 'x'],
      ['new', 'x', 'y', '--role', 'viewer'],
      ['new', 'x', '--role', 'guest'],
      ['new', 'x', '--role', 'viewer', '--verb', 'status'],
      ['new', 'x y', '--role', 'viewer'],
      ['new', 'x', '--role', 'viewer', '--expires', 'soon'],
      ['new', 'x', '--role', 'viewer', '--colour', 'red'],
    ]) {
      const { code, printed, errors } = await run(args);
      assert.deepEqual([code, printed], [64, []], args.join(' '));
      assert.match(errors.join('\n'), /usage: mountkeeper token new NAME/);
    }
  });
});

describe('tokens', () => {
  it('are found by their hash alone', () => {
    const [one, other] = [makeToken(), makeToken()];
    const entries = [one, other].map((token) => ({ token_hash: hashToken(token) }));
    assert.equal(findToken(entries, one), entries[0]);
    assert.equal(findToken(entries, other), entries[1]);
    for (const wrong of [makeToken(), '', one.slice(0, -1), hashToken(one)])
      assert.equal(findToken(entries, wrong), undefined);
  });

  it('are read from a header of their own', () => {
    assert.equal(bearerOf('Bearer mk_x'), 'mk_x');
    for (const header of [undefined, '', 'Bearer', 'Bearer a b', 'Basic mk_x', `Bearer ${'x'.repeat(300)}`])
      assert.equal(bearerOf(header), undefined, header);
  });
});
