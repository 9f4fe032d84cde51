/**
 * Folders that users move again while the kernel still remembers where they came from: the mark that it
 * writes then speaks of a place that the NAS has left. And files that overlayfs keeps no data of, which are
 * moved on the NAS and never sent.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lookOnly } from '../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';

const FILES = ['d/x', 'd/s/y', 'd/s/t/z', 'e/x', 'p/q', 'a', 'b'];

type Act = (at: (path: string) => string) => void;

const move =
  (from: string, to: string): Act =>
  (at) =>
    renameSync(at(from), at(to));
const all =
  (...acts: readonly Act[]): Act =>
  (at) =>
    acts.forEach((act) => act(at));
const write =
  (path: string): Act =>
  (at) => {
    mkdirSync(dirname(at(path)), { recursive: true });
    writeFileSync(at(path), `new ${path}`);
  };
const remove =
  (path: string): Act =>
  (at) =>
    rmSync(at(path), { recursive: true });

/** What users do before the uploader runs, and after it, step by step. */
const STORIES: Readonly<Record<string, readonly Act[]>> = {
  'into another folder': [move('d', 'D'), move('D', 'p/E')],
  'to another name beside': [move('d', 'D'), move('D', 'E')],
  back: [move('d', 'D'), move('D', 'd')],
  'back from another folder': [move('d', 'p/D'), move('p/D', 'd')],
  'three times': [move('d', 'p/D'), move('p/D', 'D'), move('D', 'e/D')],
  'and one out of it': [move('d', 'D'), move('D/s', 'o')],
  'and one out of it, two levels down': [move('d', 'D'), move('D/s/t', 'p/o')],
  'and one out of it while a new folder has its former name': [
    move('d', 'D'),
    all(write('d/s/new'), move('D/s', 'o')),
  ],
  'and one out of the new folder that has its former name': [
    move('d', 'D'),
    write('d/s/new'),
    move('d/s', 'o'),
  ],
  'and another one to its former name, and one out of each': [
    move('d', 'D'),
    move('e', 'd'),
    all(move('D/s', 'o'), move('d', 'p/d')),
  ],
  'and it changes places with another': [
    all(move('d', 't'), move('e', 'd'), move('t', 'e')),
    all(move('e/s', 'o'), move('d', 'p/d')),
  ],
  'and back into a folder with its former name': [move('d', 'D'), write('d/new'), move('D', 'd/D')],
  'and it is removed': [move('d', 'D'), remove('D')],
  'and what was moved out stays when it is removed': [move('d', 'D'), all(move('D/s', 'o'), remove('D'))],
  'with a folder in it that was renamed before': [
    all(move('d/s', 'd/S'), move('d', 'D')),
    move('D/S', 'p/S'),
  ],
  'and something new is written in it': [move('d', 'D'), all(write('D/s/new'), move('D/s', 'o'))],
  'with a file that is written anew in its former place': [move('d', 'D'), all(write('d'), move('D', 'E'))],
};

describe('a folder is moved', () => {
  let share: TestShare;
  let model: string;

  beforeEach(() => {
    share = new TestShare();
    model = join(share.root, 'model');
    for (const path of FILES)
      for (const root of [share.nas, model]) {
        mkdirSync(dirname(join(root, path)), { recursive: true });
        writeFileSync(join(root, path), `first ${path}`);
        utimesSync(join(root, path), 1_700_000_000, 1_700_000_000);
      }
    share.up();
  });
  afterEach(() => share.close());

  const run = async (most?: number): Promise<void> => {
    const uploader = share.uploader();
    try {
      await settle(uploader, most);
    } finally {
      await uploader.stop();
    }
  };

  for (const live of ['remembers', 'drops names', 'no'] as const) {
    for (const [what, acts] of Object.entries(STORIES)) {
      it(`${what} (${live === 'no' ? 'names are new' : live})`, async () => {
        share.live = live;
        for (const act of acts) {
          for (const root of [share.mount, model]) act((path) => join(root, path));
          // What waits until users see where a folder is goes on when they do.
          await run(8).catch((error: Error) => assert.match(error.message, /not settled/));
          assert.deepEqual(treeOf(share.mount), treeOf(model), 'users see what they did');
        }
        share.live = 'drops names';
        await run();
        assert.deepEqual(treeOf(share.nas), treeOf(model), 'on the NAS');
        await share.renew();
        assert.deepEqual(treeOf(share.mount), treeOf(model), 'as users see it after a start');
        assert.deepEqual(share.conflicts, []);
      });
    }
  }

  it('and its mark is lost: what is known of it is not', async () => {
    share.live = 'remembers';
    renameSync(share.at('d'), share.at('D'));
    await run(8).catch(() => undefined);
    execFileSync('setfattr', ['-x', 'trusted.overlay.redirect', join(share.upper, 'D')]);
    renameSync(share.at('D'), share.at('E'));
    share.live = 'drops names';
    await run();
    assert.equal(readFileSync(join(share.nas, 'E/s/t/z'), 'utf8'), 'first d/s/t/z');
    await share.renew();
    assert.deepEqual(treeOf(share.mount), treeOf(share.nas));
  });

  for (const last of ['takeOut', 'moveFolder'])
    it(`and a restart right after ${last} shows all its files, and none can be removed as empty`, async () => {
      renameSync(share.at('d'), share.at('D'));
      const uploader = share.uploader((call, when) =>
        call === last && (last === 'takeOut' || when === 'after') ? new Promise(() => undefined) : undefined,
      );
      await uploader.look(new AbortController().signal);
      for (let turn = 0; turn < 100 && existsSync(join(share.nas, 'd')); turn += 1)
        await new Promise((resolve) => setTimeout(resolve, 20));
      // The uploader is killed here: its records say that the move is done, or under way.
      await share.renew();
      assert.deepEqual(
        [...treeOf(share.mount).keys()].filter((path) => path.startsWith('D/')),
        ['D/s', 'D/s/t', 'D/s/t/z', 'D/s/y', 'D/x'],
      );
      await run();
      assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    });
});

describe('a file that only its name was changed of', () => {
  let share: TestShare;
  const sent: string[] = [];
  beforeEach(() => {
    sent.length = 0;
    share = new TestShare();
    for (const path of FILES) {
      mkdirSync(dirname(join(share.nas, path)), { recursive: true });
      writeFileSync(join(share.nas, path), `first ${path}`);
      utimesSync(join(share.nas, path), 1_700_000_000, 1_700_000_000);
    }
    share.up();
  });
  afterEach(() => share.close());

  const run = async (): Promise<void> => {
    const uploader = share.uploader((call, when) => {
      if (call === 'upload' && when === 'before') sent.push(call);
    });
    await settle(uploader);
    await uploader.stop();
  };
  const onNas = (path: string): string => readFileSync(join(share.nas, path), 'utf8');

  const cases: Readonly<
    Record<
      string,
      {
        readonly act: Act;
        readonly there: Readonly<Record<string, string>>;
        readonly gone?: readonly string[];
        readonly sends?: number;
      }
    >
  > = {
    'is renamed': { act: move('a', 'n'), there: { n: 'first a' }, gone: ['a'] },
    'is renamed over another one': { act: move('a', 'b'), there: { b: 'first a' }, gone: ['a'] },
    'changes places with another one': {
      act: all(move('a', 't'), move('b', 'a'), move('t', 'b')),
      there: { a: 'first b', b: 'first a' },
    },
    'is renamed, and written anew': {
      act: all(move('a', 'a~'), write('a')),
      there: { 'a~': 'first a', a: 'new a' },
      sends: 1,
    },
    'goes into a new folder': {
      act: all((at) => mkdirSync(at('new')), move('a', 'new/a')),
      there: { 'new/a': 'first a' },
      gone: ['a'],
    },
    'goes into a folder that was renamed': {
      act: all(move('e', 'E'), move('a', 'E/a')),
      there: { 'E/a': 'first a', 'E/x': 'first e/x' },
      gone: ['a', 'e'],
    },
    'goes out of a folder that was renamed': {
      act: all(move('d', 'D'), move('D/s/y', 'y')),
      there: { y: 'first d/s/y', 'D/x': 'first d/x' },
      gone: ['d', 'D/s/y'],
    },
    'is renamed in a folder that was renamed': {
      act: all(move('d/x', 'd/X'), move('d', 'D')),
      there: { 'D/X': 'first d/x' },
      gone: ['d', 'D/x'],
    },
    'is renamed and removed': { act: all(move('a', 'n'), remove('n')), there: {}, gone: ['a', 'n'] },
    'gets another mode': { act: (at) => chmodSync(at('a'), 0o755), there: { a: 'first a' } },
    'gets another mode and name': {
      act: all((at) => chmodSync(at('a'), 0o755), move('a', 'n')),
      there: { n: 'first a' },
      gone: ['a'],
    },
    'goes in the place of a folder': {
      act: all(remove('e'), move('a', 'e')),
      there: { e: 'first a' },
      gone: ['a'],
    },
  };
  for (const [what, { act, there, gone = [], sends = 0 }] of Object.entries(cases)) {
    it(`${what}: the NAS does so, and nothing is sent`, async () => {
      act((path) => share.at(path));
      const seen = treeOf(share.mount);
      await run();
      assert.equal(sent.length, sends);
      for (const [path, content] of Object.entries(there)) assert.equal(onNas(path), content);
      for (const path of gone) assert.ok(!existsSync(join(share.nas, path)), path);
      assert.deepEqual(treeOf(share.nas), seen);
      assert.deepEqual(share.conflicts, []);
      await share.renew();
      assert.deepEqual(treeOf(share.mount), seen);
      for (const path of Object.keys(there))
        if (path !== 'a' || sends === 0)
          assert.equal(lstatSync(join(share.nas, path)).mtimeMs, 1_700_000_000_000);
    });
  }

  it('is renamed here and changed by others: theirs stays and shows, and one conflict is told', async () => {
    renameSync(share.at('a'), share.at('n'));
    await lookOnly(share);
    rmSync(join(share.nas, 'a'));
    writeFileSync(join(share.nas, 'a'), 'of others');
    await share.renew();
    await run();
    assert.equal(onNas('a'), 'of others');
    assert.equal(sent.length, 0);
    assert.deepEqual(
      share.conflicts.map(({ path, copy, what }) => ({ path, copy, what })),
      [{ path: 'n', copy: 'a', what: 'moved' }],
    );
    await share.renew();
    assert.deepEqual(treeOf(share.mount), treeOf(share.nas));
  });

  it('is renamed and then appended to: the whole of it is sent', async () => {
    renameSync(share.at('a'), share.at('n'));
    writeFileSync(share.at('n'), ', more', { flag: 'a' });
    await run();
    assert.equal(onNas('n'), 'first a, more');
    assert.ok(!existsSync(join(share.nas, 'a')));
  });
});
