/** What a torture run makes of a seed, of answers and of a NAS: its own judgement must be able to find something. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { carryOut } from '../support/torture/deeds.ts';
import { Expected } from '../support/torture/expected.ts';
import { roundOf, WAYS } from '../support/torture/plan.ts';
import type { Action } from '../support/torture/plan.ts';
import { shrunk } from '../support/torture/shrink.ts';
import { treeOf } from '../support/write-layer/folder-tree.ts';

const action = (deed: Action['deed'], path: string, to?: string): Action => ({
  deed,
  path,
  ...(to === undefined ? {} : { to }),
  bytes: 100,
  seed: 7,
});

describe('a torture run', () => {
  let room: string;
  let nas: string;
  let expected: Expected;

  beforeEach(() => {
    room = mkdtempSync(join(tmpdir(), 'mk-torture-model-'));
    nas = join(room, 'nas');
    for (const way of WAYS) mkdirSync(join(nas, way, 'd'), { recursive: true });
    for (const file of ['a', 'b', 'd/a']) writeFileSync(join(nas, 'smb', file), `${file} as it was`);
    cpSync(nas, join(room, 'model'), { recursive: true });
    expected = new Expected(join(room, 'model'));
  });
  afterEach(() => rmSync(room, { recursive: true, force: true }));

  const onNas = (one: Action): void => assert.equal(carryOut(join(nas, 'smb'), 'smb', one), undefined);
  const wrong = (): string[] => [...expected.wrong(treeOf(nas)), ...expected.lost(treeOf(nas))];

  it('is the same for the same seed, whichever rounds come before', () => {
    const faults = ['one', 'another'];
    assert.deepEqual(roundOf(3, 9, faults), roundOf(3, 9, faults));
    assert.notDeepEqual(roundOf(3, 9, faults).actions, roundOf(4, 9, faults).actions);
    const seen = Array.from({ length: 40 }, (_, number) => roundOf(1, number, faults));
    assert.deepEqual(new Set(seen.map(({ fault }) => fault?.name)), new Set([undefined, 'one', 'another']));
    assert.ok(seen.every(({ actions }) => actions.nfs.every(({ deed }) => deed !== 'append')));
  });

  it('finds what was acknowledged and is not on the NAS, and what is there and should not be', () => {
    assert.equal(expected.done('smb', action('write', 'a')), undefined);
    assert.equal(expected.done('smb', action('delete', 'b')), undefined);
    assert.deepEqual(
      wrong().map((line) => line.slice(0, line.indexOf(':'))),
      ['smb/a', 'smb/b'],
    );
    onNas(action('write', 'a'));
    onNas(action('delete', 'b'));
    assert.deepEqual(wrong(), []);
    assert.match(
      expected.done('smb', action('delete', 'b')) ?? '',
      /acknowledged, though the model says ENOENT/,
    );
  });

  it('takes either outcome of what got no answer, but no third one', () => {
    expected.unknown('smb', action('rename', 'd', 'e'));
    assert.ok(
      expected.isUnknown('smb', action('write', 'd/a')) && expected.isUnknown('smb', action('make', 'e')),
    );
    assert.ok(
      !expected.isUnknown('smb', action('write', 'a')) && !expected.isUnknown('local', action('make', 'e')),
    );
    assert.deepEqual(wrong(), []);
    renameSync(join(nas, 'smb/d'), join(nas, 'smb/e'));
    assert.deepEqual(wrong(), []);
    rmSync(join(nas, 'smb/e'), { recursive: true });
    assert.match(wrong().join(), /is neither at smb\/d\/a nor at smb\/e\/a/);
    expected.settle(nas);
    assert.deepEqual([wrong(), expected.unknowns], [[], 0]);
  });

  it('holds an answer that all is synced against what was acknowledged before the question, and nothing later', () => {
    let now = 100;
    const write = (path: string): void => {
      const ended = expected.begin('smb', action('write', path), () => now);
      expected.done('smb', action('write', path));
      ended();
    };
    write('a');
    now = 200;
    write('b');
    const paths = (askedMs: number): string[] =>
      expected.wrongSince(treeOf(nas), askedMs).map((line) => line.slice(0, line.indexOf(':')));
    assert.deepEqual([paths(50), paths(150), paths(250)], [[], ['smb/a'], ['smb/a', 'smb/b']]);
  });

  it('is made shorter as long as it goes wrong', async () => {
    const rounds = Array.from({ length: 16 }, (_, number) => number);
    const needs = (some: readonly number[]): Promise<boolean> =>
      Promise.resolve(some.includes(3) && some.includes(12));
    assert.deepEqual(await shrunk(rounds, needs, 100), [3, 12]);
    assert.ok((await shrunk(rounds, needs, 3)).length > 2);
    assert.deepEqual(await shrunk([5], () => Promise.resolve(true), 9), [5]);
  });
});
