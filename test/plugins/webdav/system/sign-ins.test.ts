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
    run = () => Promise.resolve({ code: 0 });
    scratch = await createScratch('sign-ins');
    const paths = webdavPaths(scratch.path('state'));
    await preparePaths(paths);
    await mkdir(paths.own, { recursive: true });
    proxy = createServer((request, response) => void serve(request, response));
    await once(proxy.listen(paths.control), 'listening');
    let now = 0;
    log = collectLog();
    signIns = new SystemSignIns({
      clock: createClock(),
      log: log.log,
      paths,
      members: () => ['nora'],
      processes: {
        run: async ({ input = '' }: ShortCommand) => {
          asked.push(input);
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

  it('are put to PAM for members alone', async () => {
    questions = [question('1', 'nora'), question('2', 'root'), question('3', 'root', true)];
    await answered(3);
    assert.deepEqual(Object.fromEntries(answers.map(({ id, isRight }) => [id, isRight])), {
      1: true,
      2: false,
      3: false,
    });
    assert.deepEqual(asked, ['nora\nsecret words\n']);
  });

  it('are put to it eight at a time, and eight more of those who were right before', async () => {
    run = () => new Promise((resolve) => setTimeout(resolve, 100, { code: 1 }));
    questions = Array.from({ length: 40 }, (_, index) => question(`${index}`, 'nora', index % 2 === 0));
    await answered(40);
    assert.equal(most, 16);
    assert.ok(answers.every(({ isRight }) => isRight === false));
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
    const text = JSON.stringify(log.entries);
    assert.equal(text.split('PAM could not be asked').length, 2);
    assert.ok(!text.includes('secret words'));
  });
});
