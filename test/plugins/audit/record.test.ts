import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import type { AnsweredRequest } from '../../../core/contract/http.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../core/testing/manual-clock.ts';
import { AuditRecord, recordFiles } from '../../../plugins/audit/record.ts';
import { Attempts, isAttempt, Refusals } from '../../../plugins/audit/refusals.ts';
import type { Entry } from '../../../plugins/audit/entries.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { until } from '../../support/platform/wait.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 10 };

describe('the file of the record of changes', () => {
  let scratch: string;
  let folder: string;
  let clock: ManualClock;
  let unmount: () => unknown = () => undefined;
  const log = pino({ level: 'silent' });
  const recordOf = (limits = { maxBytes: 100_000, keep: 3 }): AuditRecord =>
    new AuditRecord({ folder, clock, log, limits: () => limits });
  const linesOf = async (name: string): Promise<string[]> =>
    (await readFile(join(folder, name), 'utf8')).split('\n').slice(0, -1);

  beforeEach(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'mountkeeper-audit-'));
    folder = join(scratch, 'audit');
    clock = createManualClock();
  });
  afterEach(async () => {
    unmount();
    await rm(scratch, { recursive: true, force: true });
  });

  it('is for the daemon alone, and goes on with a line of its own after one that was broken off', async () => {
    await mkdir(folder);
    await writeFile(join(folder, 'audit.log'), '{"time":"2026-01-0', { mode: 0o644 });
    const record = recordOf();
    record.write({ event: 'request', method: 'POST' });
    await record.close();
    const [broken, whole = '', ...more] = await linesOf('audit.log');
    assert.equal(broken, '{"time":"2026-01-0');
    assert.deepEqual(
      [JSON.parse(whole), more],
      [{ time: new Date(clock.now()).toISOString(), event: 'request', method: 'POST' }, []],
    );
    assert.equal((await stat(join(folder, 'audit.log'))).mode & 0o777, 0o600);
  });

  it('begins anew when it is large, and keeps so many former files', async () => {
    const record = recordOf({ maxBytes: 1_000, keep: 2 });
    for (let index = 0; index < 60; index += 1) record.write({ event: 'request', index });
    await record.close();
    assert.deepEqual((await readdir(folder)).sort(), ['audit.log', 'audit.log.1', 'audit.log.2']);
    const files = await recordFiles(folder);
    const kept = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('').trim().split('\n');
    const numbers = kept.map((line) => (JSON.parse(line) as { index: number }).index);
    assert.equal(numbers.at(-1), 59);
    assert.deepEqual(
      numbers,
      numbers.map((_, at) => 60 - numbers.length + at),
      'the newest, in order and each once',
    );
    for (const file of files) assert.ok((await stat(file)).size < 1_100);
  });

  it(
    'keeps lines while the disk is full, says so, and writes each once when there is room',
    {
      skip: unlessRoot,
    },
    async () => {
      await mkdir(folder);
      const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], {
        encoding: 'utf8',
      });
      assert.equal(mount.status, 0, mount.stderr);
      unmount = () => spawnSync('umount', ['-l', folder]);
      await writeFile(join(folder, 'ballast'), Buffer.alloc(48 * 1024));
      const record = recordOf({ maxBytes: 10_000_000, keep: 1 });
      const text = 'x'.repeat(1_000);
      for (let index = 0; index < 40; index += 1) record.write({ event: 'request', index, text });
      await until('it is told', () => record.problem !== undefined, PATIENCE);
      assert.match(record.problem ?? '', /audit\.log cannot be written \(ENOSPC\): \d+ lines wait$/);
      for (let index = 40; index < 2_000; index += 1) record.write({ event: 'request', index, text });
      assert.match(record.problem ?? '', / lines wait, and \d+ are lost$/, 'what waits is bounded');
      await rm(join(folder, 'ballast'));
      spawnSync('mount', ['-o', 'remount,size=8m', folder]);
      await clock.advance(5_000);
      await until('it is well again', () => record.problem === undefined, PATIENCE);
      await record.close();
      const lines = (await Promise.all((await recordFiles(folder)).map((file) => readFile(file, 'utf8'))))
        .join('')
        .trim()
        .split('\n')
        .flatMap((line) => {
          try {
            return [JSON.parse(line) as { event: string; index?: number; count?: number }];
          } catch {
            return [];
          }
        });
      const indices = lines.flatMap(({ index }) => (index === undefined ? [] : [index]));
      assert.equal(new Set(indices).size, indices.length);
      const lost = lines.find(({ event }) => event === 'lost');
      assert.equal((lost?.count ?? 0) + indices.length, 2_000, 'each is written or counted');
    },
  );
});

describe('attempts', () => {
  it('are written down one by one, a bounded number, and counted from then on', async () => {
    const clock = createManualClock();
    const written: Entry[] = [];
    const refusals = new Refusals(clock, (entry) => void written.push(entry), 'strangers');
    for (let index = 0; index < 1_000; index += 1)
      refusals.add({ event: 'refused' }, index % 2 === 0 ? '10.0.0.5' : `10.9.${index >> 8}.${index & 255}`);
    assert.equal(written.length, 60);
    await clock.advance(600_000);
    assert.equal(written.length, 61);
    const { event, count, addresses } = written[60] as Entry & { addresses: Record<string, number> };
    assert.deepEqual([event, count, addresses['10.0.0.5']], ['more-attempts', 940, 470]);
    assert.equal(Object.keys(addresses).length, 11, 'no more addresses than can be read');
    assert.equal(
      Object.values(addresses).reduce((sum, one) => sum + one, 0),
      940,
    );
    refusals.add({ event: 'refused' }, '10.0.0.5');
    assert.equal(written.length, 62, 'the next span begins');
    await clock.advance(600_000);
    assert.equal(written.length, 62);
  });

  it('of strangers hide none of those who are known, and what sent no credentials is counted alone', async () => {
    const clock = createManualClock();
    const written: Entry[] = [];
    const attempts = new Attempts(clock, (entry) => void written.push(entry));
    const attempt = (given: object): void =>
      attempts.add({ event: 'refused' }, {
        from: { address: '10.0.0.5' },
        status: 401,
        hasAuthorization: true,
        ...given,
      } as AnsweredRequest);
    for (let index = 0; index < 30; index += 1) attempt({ hasAuthorization: false });
    assert.equal(written.length, 0);
    for (let index = 0; index < 100; index += 1) attempt({});
    assert.equal(written.length, 60);
    attempt({ status: 403, hasAuthorization: false, principal: { name: 'ada' } });
    attempt({ status: 403, hasAuthorization: false, from: { users: [0] } });
    assert.equal(written.length, 62);
    for (let index = 0; index < 60; index += 1) attempt({ status: 403, principal: { name: 'ada' } });
    assert.equal(written.length, 120, 'they have a bound, too');
    await clock.advance(600_000);
    assert.deepEqual(
      written.slice(120).map(({ by, count }) => [by, count]),
      [
        ['anonymous', 30],
        ['strangers', 40],
        ['known', 2],
      ],
    );
  });

  it('without credentials hide nothing of those with some', () => {
    const written: Entry[] = [];
    const attempts = new Attempts(createManualClock(), (entry) => void written.push(entry));
    const attempt = (event: string, status: number, hasAuthorization: boolean): void =>
      attempts.add({ event }, { from: { address: '10.0.0.5' }, status, hasAuthorization } as AnsweredRequest);
    // Half a form of the page to sign in, and then no more; a request from another site.
    for (let index = 0; index < 100; index += 1) attempt('half', index % 2 === 0 ? 499 : 403, false);
    attempt('guess', 401, true);
    assert.deepEqual([written.length, written.at(-1)?.event], [61, 'guess']);
  });

  it('are what fails for strangers, whatever the reason, and of others what is their own fault', () => {
    const is = (status: number | undefined, more: object = {}): boolean =>
      isAttempt({ from: { address: '10.0.0.5' }, status, ...more } as AnsweredRequest);
    assert.deepEqual([is(503), is(499), is(200), is(undefined)], [true, true, false, false]);
    const ada = { principal: { name: 'ada' } };
    assert.deepEqual([is(500, ada), is(403, ada), is(500, { from: { users: [0] } })], [false, true, false]);
  });
});
