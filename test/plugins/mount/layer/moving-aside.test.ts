/** Entries of the upper folder are moved aside by a process of its own, whose daemon may die while it is told. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { moveThenDropNames } from '../../../../plugins/mount/layer/overlay.ts';

interface Told {
  readonly command: string;
  readonly args: readonly string[];
  readonly input: () => Promise<string>;
}

describe('what moves entries aside', () => {
  let root: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'mk-aside-'));
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const begin = (): { upper: string; told: (bytes?: number) => Promise<readonly boolean[]> } => {
    const upper = mkdtempSync(join(root, 'upper-'));
    const aside = `${upper}.aside`;
    mkdirSync(join(upper, 'in'));
    mkdirSync(aside);
    for (const name of ['a', 'in/b']) writeFileSync(join(upper, name), name);
    const moves = ['a', 'in/b'].map((path, index) => ({ path, to: join(aside, `1${index}`) }));
    const told = async (bytes?: number): Promise<readonly boolean[]> => {
      const run = async ({ command, args, input }: Told): Promise<object> => {
        const { status, stdout, stderr } = spawnSync(command, args, {
          input: Buffer.from(await input()).subarray(0, bytes),
          encoding: 'utf8',
        });
        return { code: status, stdout, stderr };
      };
      const tools = { processes: { arch: 'x64', run } } as never;
      return (await moveThenDropNames(moves, { upper, mountPoint: upper, spec: undefined }, tools)).moved;
    };
    return { upper, told };
  };

  it('moves what it was told', async () => {
    const { upper, told } = begin();
    assert.deepEqual(await told(), [true, true]);
    assert.deepEqual(readdirSync(`${upper}.aside`), ['10', '11']);
  });

  it('moves nothing where it was told half, whatever the half', async () => {
    const whole = `\0a\0${root}/upper-xxxxxx.aside/10\0in\0b\0${root}/upper-xxxxxx.aside/11\0.`.length;
    for (let bytes = 0; bytes < whole; bytes += 1) {
      const { upper, told } = begin();
      await assert.rejects(told(bytes), /not moved/);
      assert.deepEqual(readdirSync(`${upper}.aside`), [], `${bytes} bytes`);
    }
  });
});
