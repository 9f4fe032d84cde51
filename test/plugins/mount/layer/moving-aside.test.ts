/** Entries of the upper folder are moved aside by a process of its own, whose daemon may die while it is told. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { moveThenDropNames } from '../../../../plugins/mount/layer/overlay.ts';

interface Told {
  readonly command: string;
  readonly args: readonly string[];
  readonly input: () => Promise<string>;
}

const ctimeOf = (path: string): bigint => lstatSync(path, { bigint: true }).ctimeNs;

describe('what moves entries aside', () => {
  let root: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'mk-aside-'));
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const begin = (): {
    upper: string;
    told: (bytes?: number, changedNs?: bigint) => Promise<readonly (bigint | undefined)[]>;
  } => {
    const upper = mkdtempSync(join(root, 'upper-'));
    const aside = `${upper}.aside`;
    mkdirSync(join(upper, 'in'));
    mkdirSync(aside);
    for (const name of ['a', 'in/b']) writeFileSync(join(upper, name), name);
    const moves = ['a', 'in/b'].map((path, index) => ({
      path,
      to: join(aside, `1${index}`),
      changedNs: ctimeOf(join(upper, path)),
    }));
    const told = async (bytes?: number, changedNs?: bigint): Promise<readonly (bigint | undefined)[]> => {
      const run = async ({ command, args, input }: Told): Promise<object> => {
        const { status, stdout, stderr } = spawnSync(command, args, {
          input: Buffer.from(await input()).subarray(0, bytes),
          encoding: 'utf8',
        });
        return { code: status, stdout, stderr };
      };
      const tools = { processes: { arch: process.arch, run } } as never;
      const all = moves.map((one) => ({ ...one, changedNs: changedNs ?? one.changedNs }));
      return (await moveThenDropNames(all, { upper, mountPoint: upper, spec: undefined }, tools)).moved;
    };
    return { upper, told };
  };

  it('moves what it was told', async () => {
    const { upper, told } = begin();
    const moved = await told();
    assert.deepEqual(readdirSync(`${upper}.aside`), ['10', '11']);
    assert.deepEqual(
      moved,
      ['10', '11'].map((name) => ctimeOf(join(`${upper}.aside`, name))),
    );
  });

  it('leaves what has changed since it was looked at', async () => {
    const { upper, told } = begin();
    chmodSync(join(upper, 'a'), 0o600);
    const [a, b] = await told();
    assert.deepEqual([a, typeof b, readdirSync(`${upper}.aside`)], [undefined, 'bigint', ['11']]);
  });

  it('moves a file by all of its names, though each rename changes it', async () => {
    const { upper, told } = begin();
    rmSync(join(upper, 'in/b'));
    linkSync(join(upper, 'a'), join(upper, 'in/b'));
    const now = ctimeOf(join(upper, 'a'));
    const moved = await told(undefined, now);
    assert.deepEqual(readdirSync(`${upper}.aside`), ['10', '11']);
    const last = ctimeOf(join(`${upper}.aside`, '11'));
    assert.deepEqual(moved, [last, last]);
  });

  it('moves nothing where it was told half, whatever the half', async () => {
    const names = `\0a\0${root}/upper-xxxxxx.aside/10\0\0in\0b\0${root}/upper-xxxxxx.aside/11\0\0.`;
    const whole = `${names}${ctimeOf(root).toString().repeat(2)}`.length;
    for (let bytes = 0; bytes < whole; bytes += 1) {
      const { upper, told } = begin();
      await assert.rejects(told(bytes), /not moved/);
      assert.deepEqual(readdirSync(`${upper}.aside`), [], `${bytes} bytes`);
    }
  });

  it('says so where the kernel cannot be asked for the time of change: nothing would ever leave', async () => {
    const { upper, told } = begin();
    const { arch } = process;
    // One whose number of the call nobody has written down.
    Object.defineProperty(process, 'arch', { value: 'mips', configurable: true });
    try {
      await assert.rejects(told(), /not moved: statx\(2\) is not known on this processor/);
    } finally {
      Object.defineProperty(process, 'arch', { value: arch, configurable: true });
    }
    assert.deepEqual(readdirSync(upper).sort(), ['a', 'in']);
  });
});
