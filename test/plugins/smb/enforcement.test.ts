/** That clients are disconnected once smbd lets them in by what is wanted, and not before. */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import type { Processes, ShortCommand } from 'mountkeeper';
import { smbPaths } from '../../../plugins/smb/paths.ts';
import type { ServedShare } from '../../../plugins/smb/server-config.ts';
import { Enforcement } from '../../../plugins/smb/smbd.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

const TEAM: ServedShare = { name: 'team', path: '/mnt/team', readOnly: false, isShared: false };
const wanted = (text: string, ...shares: readonly ServedShare[]) => ({
  text,
  shares: new Map(shares.map((share) => [share.name, share])),
  env: {},
});

async function setUp(t: TestContext) {
  const scratch = await createScratch('smb-enforcement');
  t.after(() => scratch.close());
  const paths = smbPaths(scratch.root);
  await mkdir(paths.root, { recursive: true });
  /** By command, or order to smbd: its exit code, or why it cannot be run. */
  const answers = new Map<string, number | Error>();
  const orders: string[] = [];
  const sessions: string[] = [];
  const run = async ({ command, args }: ShortCommand) => {
    const answer = answers.get(args.slice(3).join(' ')) ?? answers.get(command) ?? 0;
    if (answer instanceof Error) throw answer;
    if (command === 'smbcontrol' && answer === 0) orders.push(args.slice(3).join(' '));
    return { code: answer, stdout: command === 'smbstatus' ? sessions.join('\n') : '', stderr: '' };
  };
  const processes = { run } as unknown as Processes;
  const enforcement = new Enforcement({ processes, paths, log: pino({ level: 'silent' }) });
  await enforcement.apply(wanted('first', TEAM));
  orders.length = 0;
  return { enforcement, answers, orders, sessions, conf: () => readFile(paths.conf, 'utf8') };
}

describe('what smbd is told', () => {
  it('keeps clients in their shares while it is refused, and disconnects them when it is taken', async (t) => {
    const { enforcement, answers, orders, conf } = await setUp(t);
    const refusals = [
      [1, 'testparm ended with 1'],
      [new Error('testparm took too long'), 'testparm took too long'],
    ] as const;
    for (const [answer, problem] of refusals) {
      answers.set('testparm', answer);
      await assert.rejects(enforcement.apply(wanted('second')), { message: problem });
      assert.deepEqual([orders, await conf(), enforcement.problem], [[], 'first', problem]);
    }
    await enforcement.apply(wanted('first', TEAM));
    assert.equal(enforcement.problem, undefined, 'what is in force is wanted again');
    answers.clear();
    await enforcement.apply(wanted('second'));
    await enforcement.apply(wanted('second'));
    assert.deepEqual(orders, ['smbd reload-config', 'smbd close-share team']);
    assert.deepEqual([await conf(), enforcement.problem], ['second', undefined]);
  });

  it('is told again when the order to read it could not be sent', async (t) => {
    for (const answer of [new Error('smbcontrol took too long'), 1]) {
      const { enforcement, answers, orders } = await setUp(t);
      answers.set('smbcontrol', answer);
      await assert.rejects(enforcement.apply(wanted('second')), /smbcontrol/);
      assert.match(enforcement.problem ?? '', /smbcontrol/);
      answers.clear();
      await enforcement.apply(wanted('second'));
      assert.deepEqual(
        [orders, enforcement.problem],
        [['smbd reload-config', 'smbd close-share team'], undefined],
      );
    }
  });

  it('is told again also where what was wanted before is wanted again, or the server has begun anew', async (t) => {
    const { enforcement, answers, orders } = await setUp(t);
    answers.set('smbcontrol', 1);
    await assert.rejects(enforcement.apply(wanted('second', TEAM)));
    answers.clear();
    await enforcement.apply(wanted('first', TEAM));
    assert.deepEqual(orders.splice(0), ['smbd reload-config']);
    enforcement.tellAgain();
    await enforcement.apply(wanted('first', TEAM));
    await enforcement.apply(wanted('first', TEAM));
    assert.deepEqual(orders, ['smbd reload-config']);
  });

  it('is told again of the share alone whose clients it has not disconnected, which is said meanwhile', async (t) => {
    const { enforcement, answers, orders } = await setUp(t);
    const more = { ...TEAM, name: 'more' };
    await enforcement.apply(wanted('both', TEAM, more));
    orders.length = 0;
    answers.set('smbd close-share team', 1);
    await enforcement.apply(wanted('none'));
    await enforcement.apply(wanted('none'));
    assert.deepEqual(orders.splice(0), ['smbd reload-config', 'smbd close-share more']);
    assert.match(
      enforcement.problem ?? '',
      /clients of the share 'team' are not disconnected yet: smbcontrol/,
    );
    answers.clear();
    await enforcement.apply(wanted('none'));
    await enforcement.apply(wanted('none'));
    assert.deepEqual([orders, enforcement.problem], [['smbd close-share team'], undefined]);
  });

  it('is told again of the sessions alone that it could not tell: the others have come back rightly', async (t) => {
    const { enforcement, answers, orders, sessions } = await setUp(t);
    const of = (...write: string[]): ServedShare => ({ ...TEAM, access: { write, read: [] } });
    await enforcement.apply(wanted('both', of('anna', 'ben')));
    // This process lives, so it counts as one that has not heard it.
    const [heard, deaf] = [2 ** 22 + 1, process.pid];
    sessions.push(`${heard}  anna  nogroup`, `${deaf}  ben  nogroup`);
    orders.length = 0;
    answers.set(`${deaf} close-share team`, 1);
    for (let look = 0; look < 3; look += 1) await enforcement.apply(wanted('none', of()));
    assert.deepEqual(orders.splice(0), [
      'smbd reload-config',
      `${heard} reload-config`,
      `${heard} close-share team`,
      ...Array<string>(3).fill(`${deaf} reload-config`),
    ]);
    assert.match(enforcement.problem ?? '', /clients of the share 'team' are not disconnected yet/);
    answers.clear();
    for (let look = 0; look < 2; look += 1) await enforcement.apply(wanted('none', of()));
    assert.deepEqual(
      [orders, enforcement.problem],
      [[`${deaf} reload-config`, `${deaf} close-share team`], undefined],
    );
  });

  it('disconnects who came in meanwhile, too, where what was wanted first is wanted again', async (t) => {
    const { enforcement, answers, orders } = await setUp(t);
    const readOnly = { ...TEAM, readOnly: true };
    answers.set('smbd close-share team', 1);
    await enforcement.apply(wanted('second', readOnly));
    answers.clear();
    await enforcement.apply(wanted('first', TEAM));
    await enforcement.apply(wanted('first', TEAM));
    assert.deepEqual(orders, ['smbd reload-config', 'smbd reload-config', 'smbd close-share team']);
  });
});
