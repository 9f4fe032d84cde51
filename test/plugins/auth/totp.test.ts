/** One-time codes: as RFC 6238 has them, each counts once, and `mountkeeper totp new`. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import pino from 'pino';
import type { CliContext } from '../../../core/contract/cli.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../core/testing/manual-clock.ts';
import { Codes, MOST_WRONG, REST_MS } from '../../../plugins/auth/totp/codes.ts';
import { codeOf, keyOf, stepAt, STEP_MS, toBase32, uriOf } from '../../../plugins/auth/totp/totp.ts';
import { totpCommand } from '../../../plugins/auth/totp/totp-command.ts';

const KEY = Buffer.from('12345678901234567890');
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

describe('codes of RFC 6238', () => {
  it('are those of its test vectors', () => {
    // Appendix B, SHA-1: the last six of its eight digits.
    const vectors = [
      [59, '94287082'],
      [1_111_111_109, '07081804'],
      [1_111_111_111, '14050471'],
      [1_234_567_890, '89005924'],
      [2_000_000_000, '69279037'],
      [20_000_000_000, '65353130'],
    ] as const;
    for (const [seconds, digits] of vectors)
      assert.equal(codeOf(KEY, stepAt(seconds * 1_000)), digits.slice(2), String(seconds));
  });

  it('have secrets in Base32, as people copy them', () => {
    assert.equal(toBase32(KEY), SECRET);
    // RFC 4648, section 10.
    assert.deepEqual(
      ['', 'f', 'fo', 'foo', 'foob', 'fooba', 'foobar'].map((text) => toBase32(Buffer.from(text))),
      ['', 'MY', 'MZXQ', 'MZXW6', 'MZXW6YQ', 'MZXW6YTB', 'MZXW6YTBOI'],
    );
    const copied = [SECRET, SECRET.toLowerCase(), ` ${SECRET.match(/.{4}/g)?.join(' ')}\n`, `${SECRET}====`];
    for (const text of copied) assert.deepEqual(keyOf(text), KEY, text);
    for (const text of [
      '',
      SECRET.slice(0, 24),
      `${SECRET}1`,
      '********',
      'GEZDGNBV-GY3TQOJQGEZDGNBVGY3TQOJQ',
    ])
      assert.equal(keyOf(text), undefined, text);
  });

  it('are written for apps', () => {
    assert.equal(
      uriOf(SECRET, 'ada & bob'),
      `otpauth://totp/Mountkeeper:ada%20%26%20bob?secret=${SECRET}&issuer=Mountkeeper`,
    );
  });
});

describe('a code', () => {
  let clock: ManualClock;
  let codes: Codes;
  let lines: string[];
  beforeEach(async () => {
    clock = createManualClock();
    lines = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    codes = new Codes({ clock: () => clock, log });
    await clock.advance(10 * STEP_MS);
  });
  const at = (offset: number): string => codeOf(KEY, stepAt(clock.now()) + offset);
  const take = (code: string, holder = 'ada', secret = SECRET): boolean =>
    codes.take({ holder, secret, code });

  it('counts once', async () => {
    const now = at(0);
    assert.deepEqual([take(now), take(now)], [true, false]);
    await clock.advance(STEP_MS);
    assert.equal(take(now), false, 'it is still within a step, but was taken');
    assert.equal(take(` ${at(0).slice(0, 3)} ${at(0).slice(3)} `), true);
  });

  it('counts a step before its time and one after, and no further', () => {
    assert.deepEqual(
      [-2, 2].map((offset) => take(at(offset), 'bob')),
      [false, false],
    );
    assert.deepEqual([take(at(-1)), take(at(1))], [true, true]);
    assert.deepEqual([take(at(-1)), take(at(0))], [false, false], 'none of before the last one');
    assert.equal(take(at(0), 'bob'), true, 'each user has codes of her own');
  });

  it('is not taken after the start as long as a former daemon may have taken it', async () => {
    codes.start();
    assert.deepEqual(
      [-1, 0, 1].map((offset) => take(at(offset))),
      [false, false, false],
    );
    await clock.advance(2 * STEP_MS);
    assert.deepEqual([take(at(-1)), take(at(0))], [false, true]);
  });

  it('is not counted as a guess where it is right, but too early or sent again', async () => {
    codes.start();
    for (let count = 0; count <= MOST_WRONG; count += 1) assert.equal(take(at(0)), false);
    assert.match(lines.join(''), /a right code of this user was not taken/);
    await clock.advance(2 * STEP_MS);
    assert.equal(take(at(0)), true, 'whoever was impatient is not shut out');
    for (let count = 0; count <= MOST_WRONG; count += 1) assert.equal(take(at(0)), false);
    assert.equal(take(at(1)), true);
    assert.doesNotMatch(lines.join(''), /tries codes/);
  });

  it('is not guessed: after some wrong ones none is looked at for a while, of this user alone', async () => {
    for (let count = 0; count < MOST_WRONG; count += 1) assert.equal(take('x'), false);
    assert.equal(take(at(0)), false);
    assert.equal(take(at(0), 'bob'), true);
    assert.equal(lines.filter((line) => line.includes('tries codes')).length, 1);
    await clock.advance(REST_MS);
    assert.equal(take(at(0)), true);
    for (let count = 0; count < MOST_WRONG - 1; count += 1) take('x');
    assert.equal(take(at(1)), true, 'wrong ones before a right one are forgotten');
    for (let count = 0; count < MOST_WRONG - 1; count += 1) take('x');
    await clock.advance(2 * STEP_MS);
    assert.equal(take(at(0)), true);
  });

  it('is none where the secret is none, and of another secret where that has changed', () => {
    assert.equal(take(at(0), 'ada', 'short'), false);
    assert.match(lines.join(''), /totp_secret/);
    assert.doesNotMatch(lines.join(''), new RegExp(SECRET));
    assert.equal(take(at(0)), true);
    const other = toBase32(Buffer.alloc(20, 7));
    const code = codeOf(Buffer.alloc(20, 7), stepAt(clock.now()));
    assert.equal(take(code, 'ada', other), true);
    codes.keep(['bob']);
    assert.equal(take(code, 'ada', other), true, 'nothing is kept of those who are gone');
  });
});

describe('mountkeeper totp new', () => {
  const run = async (args: readonly string[], json = false) => {
    const [printed, errors]: [string[], string[]] = [[], []];
    const print = (text: string) => void printed.push(text);
    const printError = (text: string) => void errors.push(text);
    const code = await totpCommand.run({ args, json, print, printError } as unknown as CliContext);
    return { code, printed, errors: errors.join('\n') };
  };

  it('prints the secret, and a picture and an address of it for apps', async () => {
    const { code, errors, printed } = await run(['new', 'ada']);
    const [secret = ''] = printed;
    assert.deepEqual([code, printed.length, keyOf(secret)?.length], [0, 1, 20]);
    assert.ok(errors.includes(`\n${uriOf(secret, 'ada')}\n`) && errors.includes(`totp_secret = "${secret}"`));
    assert.ok((errors.match(/^[█▀▄ ]{30,}$/gm) ?? []).length > 15, 'the picture');
    assert.notEqual((await run(['new', 'ada'])).printed[0], secret);
  });

  it('gives machines the same as JSON, and refuses what it does not know', async () => {
    const { code, errors, printed } = await run(['new'], true);
    const { secret, toml, uri } = JSON.parse(printed[0] ?? '') as Record<string, string>;
    assert.deepEqual([code, errors, toml], [0, '', `totp_secret = "${secret}"`]);
    assert.equal(uri, uriOf(secret ?? '', 'admin'));
    for (const args of [[], ['old'], ['new', 'a', 'b'], ['new', '--json'], ['new', '']])
      assert.deepEqual([(await run(args)).code, (await run(args)).printed], [64, []], args.join(' '));
  });
});
