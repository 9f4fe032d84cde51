/** What the scanner reads of a real upper folder, for each thing that users can do. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { bytesOf } from '../../../../plugins/uploads/compare/names.ts';
import { createScanner } from '../../../../plugins/uploads/compare/scan.ts';
import { processes, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('the scanner', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd/s'), { recursive: true });
    mkdirSync(join(share.nas, 'e'));
    for (const path of ['a', 'd/f', 'd/s/g']) writeFileSync(join(share.nas, path), 'on the NAS');
    share.up();
  });
  afterEach(() => share.close());

  const seen = async (fewEntries?: number): Promise<Record<string, string>> => {
    const scanner = createScanner(share.upper, processes, { fewEntries });
    const { entries } = await scanner.scan(new AbortController().signal);
    return Object.fromEntries(
      [...entries.values()].map(({ path, kind, bytes, hasNoData, isOpaque, movedFrom }) => [
        path,
        `${kind}${kind === 'file' ? ` ${bytes}` : ''}` +
          `${hasNoData === true ? ' without data' : ''}${isOpaque ? ' opaque' : ''}` +
          `${movedFrom === undefined ? '' : ` from ${movedFrom}`}`,
      ]),
    );
  };

  const cases: Readonly<
    Record<
      string,
      { readonly act: (at: (path: string) => string) => void; readonly shows: Record<string, string> }
    >
  > = {
    nothing: { act: () => undefined, shows: {} },
    'a new file': { act: (at) => writeFileSync(at('n'), '123'), shows: { n: 'file 3' } },
    'a file that was overwritten': {
      act: (at) => writeFileSync(at('d/f'), '1'),
      shows: { d: 'folder', 'd/f': 'file 1' },
    },
    'a file that was appended to': { act: (at) => appendFileSync(at('a'), '!'), shows: { a: 'file 11' } },
    'a file that was shortened': { act: (at) => truncateSync(at('a'), 2), shows: { a: 'file 2' } },
    'a file that was renamed': {
      act: (at) => renameSync(at('a'), at('b')),
      shows: { a: 'whiteout', b: 'file 10 without data from a' },
    },
    'a file that was renamed and appended to': {
      act: (at) => {
        renameSync(at('a'), at('b'));
        appendFileSync(at('b'), '!');
      },
      shows: { a: 'whiteout', b: 'file 11' },
    },
    'a file that was renamed in a folder that was renamed': {
      act: (at) => {
        renameSync(at('d'), at('m'));
        renameSync(at('m/f'), at('m/g'));
      },
      shows: { d: 'whiteout', m: 'folder from d', 'm/f': 'whiteout', 'm/g': 'file 10 without data from d/f' },
    },
    'a file that got another mode': {
      act: (at) => chmodSync(at('a'), 0o700),
      shows: { a: 'file 10 without data' },
    },
    'a file that was deleted': { act: (at) => rmSync(at('d/f')), shows: { d: 'folder', 'd/f': 'whiteout' } },
    'a new folder in a new one': {
      act: (at) => mkdirSync(at('n/m'), { recursive: true }),
      shows: { n: 'folder opaque', 'n/m': 'folder' },
    },
    'a folder that was removed': {
      act: (at) => rmSync(at('d'), { recursive: true }),
      shows: { d: 'whiteout' },
    },
    'a folder that was made anew': {
      act: (at) => {
        rmSync(at('d'), { recursive: true });
        mkdirSync(at('d'));
        writeFileSync(at('d/n'), '');
      },
      shows: { d: 'folder opaque', 'd/n': 'file 0' },
    },
    'a folder that was renamed': {
      act: (at) => renameSync(at('d'), at('m')),
      shows: { d: 'whiteout', m: 'folder from d' },
    },
    'a folder that was renamed in one that was renamed': {
      act: (at) => {
        renameSync(at('d/s'), at('d/t'));
        renameSync(at('d'), at('m'));
      },
      shows: { d: 'whiteout', m: 'folder from d', 'm/s': 'whiteout', 'm/t': 'folder from d/s' },
    },
    'a folder that was moved out of one that was renamed': {
      act: (at) => {
        renameSync(at('d'), at('m'));
        renameSync(at('m/s'), at('o'));
      },
      shows: { d: 'whiteout', m: 'folder from d', 'm/s': 'whiteout', o: 'folder from d/s' },
    },
    'a folder that was renamed and back': {
      act: (at) => {
        renameSync(at('d'), at('m'));
        renameSync(at('m'), at('d'));
      },
      shows: { d: 'folder from d' },
    },
    'two folders that changed places': {
      act: (at) => {
        renameSync(at('d'), at('t'));
        renameSync(at('e'), at('d'));
        renameSync(at('t'), at('e'));
      },
      shows: { d: 'folder from e', e: 'folder from d' },
    },
    'a folder in the place of a file': {
      act: (at) => {
        rmSync(at('a'));
        mkdirSync(at('a'));
      },
      shows: { a: 'folder opaque' },
    },
    'a file in the place of a folder': {
      act: (at) => {
        rmSync(at('d'), { recursive: true });
        writeFileSync(at('d'), '12');
      },
      shows: { d: 'file 2' },
    },
    'hard names': {
      act: (at) => {
        for (const name of ['line\nbreak', ' lead', 'trail ', '-x', 'ü💾', '%s\\n', '"q"']) {
          mkdirSync(at(name));
          writeFileSync(at(`${name}/f`), '');
        }
      },
      shows: Object.fromEntries(
        ['line\nbreak', ' lead', 'trail ', '-x', 'ü💾', '%s\\n', '"q"'].flatMap((name) => [
          [name, 'folder opaque'],
          [`${name}/f`, 'file 0'],
        ]),
      ),
    },
    'a name of 250 bytes, far down': {
      act: (at) => mkdirSync(at(`${'n'.repeat(250)}/${'m'.repeat(250)}`), { recursive: true }),
      shows: { ['n'.repeat(250)]: 'folder opaque', [`${'n'.repeat(250)}/${'m'.repeat(250)}`]: 'folder' },
    },
    'a link': { act: (at) => symlinkSync('a', at('l')), shows: { l: 'other' } },
    'names that are no text': {
      act: (at) => {
        writeFileSync(bytesOf(at('x\udcff')), '');
        renameSync(at('a'), bytesOf(at('a\udce9')));
        renameSync(at('d'), bytesOf(at('ü\udce9')));
        rmSync(bytesOf(at('ü\udce9/f')));
        writeFileSync(bytesOf(at('ü\udce9/💾')), '12');
        mkdirSync(bytesOf(at('ü\udce9/\udc80')));
      },
      shows: {
        'x\udcff': 'file 0',
        a: 'whiteout',
        'a\udce9': 'file 10 without data from a',
        d: 'whiteout',
        // Each byte of such a name counts by itself.
        '\udcc3\udcbc\udce9': 'folder from d',
        '\udcc3\udcbc\udce9/f': 'whiteout',
        '\udcc3\udcbc\udce9/💾': 'file 2',
        '\udcc3\udcbc\udce9/\udc80': 'folder opaque',
      },
    },
    'names with the sign for what is no text': {
      act: (at) => {
        mkdirSync(at('x\uFFFD'));
        writeFileSync(at('x\uFFFD/f'), '');
        renameSync(at('d'), at('d\uFFFD'));
        renameSync(at('d\uFFFD/s'), at('d\uFFFD/t'));
        // They look alike.
        renameSync(at('e'), bytesOf(at('x\udcff')));
        writeFileSync(bytesOf(at('x\udcff/f')), '12');
      },
      shows: {
        'x\uFFFD': 'folder opaque',
        'x\uFFFD/f': 'file 0',
        d: 'whiteout',
        'd\uFFFD': 'folder from d',
        'd\uFFFD/s': 'whiteout',
        'd\uFFFD/t': 'folder from d/s',
        e: 'whiteout',
        'x\udcff': 'folder from e',
        'x\udcff/f': 'file 2',
      },
    },
  };

  for (const [what, { act, shows }] of Object.entries(cases)) {
    it(`shows ${what}`, async () => {
      act((path) => share.at(path));
      assert.deepEqual(await seen(), shows);
      assert.deepEqual(await seen(0), shows, 'by find');
    });
  }

  it('knows when folders were changed since', async () => {
    const { signal } = new AbortController();
    const scanner = createScanner(share.upper, processes);
    mkdirSync(share.at('n'));
    const scan = await scanner.scan(signal);
    assert.equal(await scanner.isStill(scan, signal), true);
    renameSync(share.at('n'), share.at('m'));
    assert.equal(await scanner.isStill(scan, signal), false);
  });

  it('reads marks anew when they change', async () => {
    const { signal } = new AbortController();
    const scanner = createScanner(share.upper, processes);
    renameSync(share.at('d'), share.at('m'));
    assert.equal((await scanner.scan(signal)).entries.get('m')?.movedFrom, 'd');
    assert.equal((await scanner.scan(signal)).entries.get('m')?.movedFrom, 'd');
    mkdirSync(share.at('p'));
    renameSync(share.at('m'), share.at('p/m'));
    assert.equal((await scanner.scan(signal)).entries.get('p/m')?.movedFrom, 'd');
  });

  it('reads a file again that changed within the last tick of the clock: it may have changed once more', async () => {
    let asked = 0;
    const counting: Pick<Processes, 'run'> = {
      run: (spec) => {
        if (spec.command === 'getfattr') asked += 1;
        return processes.run(spec);
      },
    };
    writeFileSync(share.at('n'), '1');
    const { ctimeMs } = statSync(join(share.upper, 'n'));
    let nowMs = ctimeMs + 5;
    const scanner = createScanner(share.upper, counting, { now: () => nowMs });
    const { signal } = new AbortController();
    const counts: number[] = [];
    for (const laterMs of [0, 0, 1_000, 0]) {
      nowMs += laterMs;
      await scanner.scan(signal);
      counts.push(asked);
    }
    assert.deepEqual(counts, [1, 2, 3, 3]);
  });

  it('is not sure to have missed nothing where a folder changed within the last tick of the clock', async () => {
    mkdirSync(share.at('n'));
    let nowMs = statSync(join(share.upper, 'n')).ctimeMs + 5;
    const scanner = createScanner(share.upper, processes, { now: () => nowMs });
    const { signal } = new AbortController();
    const isStill = async (): Promise<boolean> => scanner.isStill(await scanner.scan(signal), signal);
    assert.equal(await isStill(), false);
    nowMs += 1_000;
    assert.equal(await isStill(), true);
    // A clock that was set back by an hour tells nothing for an hour.
    nowMs -= 3_600_000;
    assert.equal(await isStill(), true);
  });

  it('rejects when marks cannot be read, whatever is gone beside', async () => {
    const said = (stderr: string): Pick<Processes, 'run'> => ({
      run: async (spec) => {
        const result = await processes.run(spec);
        return spec.command === 'getfattr' ? { ...result, code: 1, stderr } : result;
      },
    });
    const scan = (stderr: string): Promise<unknown> =>
      createScanner(share.upper, said(stderr)).scan(new AbortController().signal);
    renameSync(share.at('a'), share.at('b'));
    const gone = 'getfattr: /upper/line\nbreak: No such file or directory\n';
    await scan(gone + gone);
    // A folder whose name a file has by now.
    await scan(`getfattr: /upper/A/x: Not a directory\n${gone}`);
    await assert.rejects(
      scan(`getfattr: /upper/b: Input/output error\n${gone}`),
      /cannot be read: getfattr: .*b/,
    );
  });

  it('rejects when there is no such folder', async () => {
    await assert.rejects(
      createScanner(join(share.root, 'none'), processes).scan(new AbortController().signal),
      /cannot be read/,
    );
  });
});
