/** How the daemon answers the proxy about users of the machine: one that was broken into is not taken at its word. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ShortCommand, ShortCommandResult } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { preparePaths, webdavPaths } from '../../../../plugins/webdav/exporter/paths.ts';
import type { SystemAnswer, SystemQuestion } from '../../../../plugins/webdav/proxy/state.ts';
import { SystemSignIns } from '../../../../plugins/webdav/system/sign-ins.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';

describe('questions of the proxy about users of the machine', () => {
  let scratch: Scratch;
  let proxy: Server;
  let signIns: SystemSignIns;
  let questions: readonly SystemQuestion[];
  let answers: SystemAnswer[];
  let asked: string[];
  let most: number;
  let members: readonly string[] | undefined;
  /** The clock goes ahead by so much. */
  let aheadMs: number;
  let log: ReturnType<typeof collectLog>;
  let run: () => Promise<Partial<ShortCommandResult>>;

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString();
    if (body !== '') answers.push(JSON.parse(body) as SystemAnswer);
    const next = body === '' ? questions : null;
    if (body === '') questions = [];
    setTimeout(() => response.end(JSON.stringify(next)), 20);
  };

  beforeEach(async () => {
    [questions, answers, asked, most] = [[], [], [], 0];
    [members, aheadMs] = [['nora'], 0];
    run = () => Promise.resolve({ code: 0 });
    scratch = await createScratch('sign-ins');
    const paths = webdavPaths(scratch.path('state'));
    await preparePaths(paths);
    await mkdir(paths.own, { recursive: true });
    proxy = createServer((request, response) => void serve(request, response));
    await once(proxy.listen(paths.control), 'listening');
    let now = 0;
    log = collectLog();
    const clock = createClock();
    signIns = new SystemSignIns({
      clock: { ...clock, monotonic: () => clock.monotonic() + aheadMs },
      log: log.log,
      paths,
      members: () => members,
      processes: {
        run: async ({ input = '' }: ShortCommand) => {
          asked.push(String(input));
          now += 1;
          most = Math.max(most, now);
          const result = await run();
          now -= 1;
          return { code: null, signal: null, stdout: '', stderr: '', ...result };
        },
      },
    });
    signIns.start();
  });
  afterEach(async () => {
    signIns.stop();
    proxy.closeAllConnections();
    proxy.close();
    await scratch.close();
  });

  const question = (id: string, name: string, wasRight = false): SystemQuestion => ({
    id,
    name,
    password: 'secret words',
    wasRight,
  });
  const answered = (count: number): Promise<unknown> =>
    until('they are answered', () => answers.length === count, { timeoutMs: 10_000 });

  it('are put to PAM for members alone; of others it is asked about nobody, whose answer is none', async () => {
    questions = [question('1', 'nora'), question('2', 'root'), question('3', 'root', true)];
    await answered(3);
    assert.deepEqual(Object.fromEntries(answers.map(({ id, isRight }) => [id, isRight])), {
      1: true,
      2: false,
      3: false,
    });
    assert.deepEqual(asked.sort(), [
      ...Array<string>(2).fill('nobody\nsecret words\n'),
      'nora\nsecret words\n',
    ]);
  });

  it('have the same answer for everybody while PAM gives none', async () => {
    run = () => Promise.resolve({ code: 52 });
    questions = [question('1', 'nora'), question('2', 'root'), question('3', 'nobody-here')];
    await answered(3);
    assert.deepEqual(
      answers.map(({ isRight }) => isRight),
      [null, null, null],
    );
  });

  it('are put to it eight at a time, and eight more of those who were right before', async () => {
    run = () => new Promise((resolve) => setTimeout(resolve, 100, { code: 1 }));
    questions = Array.from({ length: 40 }, (_, index) => question(`${index}`, 'nora', index % 2 === 0));
    await answered(40);
    assert.equal(most, 16);
    assert.ok(answers.every(({ isRight }) => isRight === false));
  });

  it('are not put to it once the proxy has told their clients that nobody can say', async () => {
    let go = (): void => undefined;
    const late = new Promise<void>((resolve) => (go = resolve));
    run = () => late.then(() => ({ code: 0 }));
    questions = Array.from({ length: 9 }, (_, index) => question(`${index}`, 'nora'));
    await until('eight are being asked about', () => asked.length === 8, { timeoutMs: 10_000 });
    aheadMs = 15_000;
    go();
    await answered(9);
    assert.equal(asked.length, 8);
    assert.equal(answers.filter(({ isRight }) => isRight === null).length, 1);
  });

  it('are held to a bound that no sound proxy reaches', async () => {
    questions = Array.from({ length: 1_101 }, (_, index) => question(`${index}`, 'otto', index % 2 === 0));
    await answered(1_100);
    questions = [question('last', 'nora')];
    await answered(1_101);
    assert.ok(!answers.some(({ id }) => id === '1100'));
  });

  it('are unanswered while the members are not known yet', async () => {
    members = undefined;
    questions = [question('1', 'nora')];
    await answered(1);
    assert.deepEqual([answers[0]?.isRight, asked], [null, []]);
  });

  it('are answered on after something came that is none', async () => {
    for (const odd of [{}, [null], [{ ...question('1', 'nora'), name: ['nora'] }]] as unknown[]) {
      questions = odd as readonly SystemQuestion[];
      await until('it was fetched', () => questions !== odd, { timeoutMs: 10_000 });
    }
    questions = [question('2', 'nora')];
    await answered(1);
    assert.deepEqual(answers, [{ id: '2', isRight: true }]);
  });

  it('are asked for no more at the end, though something starts it once more', async () => {
    signIns.close();
    signIns.start();
    // What was under way is over by then.
    await new Promise((resolve) => setTimeout(resolve, 100));
    questions = [question('1', 'nora')];
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(questions.length, 1);
  });

  it('are said to be unanswered where PAM cannot be asked, once in the log and without the password', async () => {
    run = () => Promise.reject(new Error("command 'pwauth' was not found"));
    questions = [question('1', 'nora'), question('2', 'nora')];
    await answered(2);
    assert.deepEqual(
      answers.map(({ isRight }) => isRight),
      [null, null],
    );
    assert.match(signIns.problem ?? '', /pwauth/);
    aheadMs = 60_000;
    assert.equal(signIns.problem, undefined, 'a minute later');
    const text = JSON.stringify(log.entries);
    assert.equal(text.split('PAM could not be asked').length, 2);
    assert.ok(!text.includes('secret words'));
  });
});
