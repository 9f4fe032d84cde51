/** Real plugins in processes that they share, each under its own supervisor as in the daemon. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Clock } from '../../../../../core/contract/platform.ts';
import type { Permission } from '../../../../../core/contract/services.ts';
import { createClock } from '../../../../../core/platform/clock.ts';
import { packageDir } from '../../../../../core/plugins/discovery/stage.ts';
import { ownFolder } from '../../../../../core/plugins/runner/process/confinement.ts';
import { SPACE } from '../../../../../core/plugins/runner/process/own-space.ts';
import type { Crashes } from '../../../../../core/plugins/runner/process/runner-supervisor.ts';
import type { RunnerSupervisor } from '../../../../../core/plugins/runner/process/runner-supervisor.ts';
import { SharedRunners } from '../../../../../core/plugins/runner/process/shared-runners.ts';
import { isAlive } from '../../../../support/platform/processes.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { quickClock } from '../../../../support/platform/quick-clock.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';

const STATUS: readonly Permission[] = ['read-status', 'own-files', 'network'];
const PATIENCE = { timeoutMs: 30_000 };

interface Member {
  readonly supervisor: RunnerSupervisor;
  readonly started: Promise<void>;
  readonly crashes: Crashes;
  /** What was said of its process being away, in this order; undefined once it is back. */
  readonly absences: (string | undefined)[];
  readonly givenUp: string[];
  /** Of the process that it is in. */
  pid(): Promise<number>;
  /** What its tap makes of a word. */
  ask(word: string): Promise<unknown>;
}

describe('plugins that share a process', { timeout: 120_000 }, () => {
  let scratch: Scratch;
  let runners: SharedRunners;
  let said: ReturnType<typeof collectLog>;
  let made = 0;
  beforeEach(async () => {
    scratch = await createScratch('shared');
    said = collectLog();
    runners = new SharedRunners(said.log);
  });
  afterEach(() => scratch.close());

  /** Its process knows what it may do by the names that are expected; `body` is what its tap does with `word`. */
  async function member(
    name: string,
    body = '',
    { permissions = STATUS, more = '', isExpected = true, clock = createClock(), space = SPACE } = {},
  ): Promise<() => Member> {
    const folder = scratch.path('copies', `${name}@${(made += 1)}`);
    const entry = `${folder}/index.js`;
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/package.json`, '{ "type": "module" }');
    await writeFile(
      entry,
      `import { writeSync } from 'node:fs';
      import { writeFile } from 'node:fs/promises';
      export default { name: '${name}', version: '1.0.0', apiVersion: 1, description: 'One of several.',
        register(ctx) { ${more} void writeFile; void writeSync;
          ctx.tap('afterCycle', async (word) => { ${body} return word === 'pid' ? process.pid : word; }); } };`,
    );
    const stateDir = scratch.root;
    if (isExpected) runners.expect({ name, entry, permissions, stateDir });
    return () => {
      const crashes: Crashes = [];
      const absences: (string | undefined)[] = [];
      const givenUp: string[] = [];
      const supervisor = supervisorOf(
        { log: said.log, send: async () => undefined },
        { permissions, entry, folder, name, stateDir, packageDir },
        {
          clock,
          space,
          crashes,
          launch: (options) => runners.seat(options),
          giveUpSeat: () => runners.forget(name),
          onGivenUp: (reason) => void givenUp.push(reason),
          onAbsence: (why) => void absences.push(why),
        },
      );
      scratch.defer(() => supervisor.stop('shutdown'));
      const ask = (word: string): Promise<unknown> => supervisor.call('tap', 0, [word]);
      const pid = async (): Promise<number> => Number(await ask('pid'));
      return { supervisor, started: supervisor.start(), crashes, absences, givenUp, pid, ask };
    };
  }

  /** All come up at once, as when the daemon starts. */
  async function up(...those: readonly (() => Member)[]): Promise<readonly Member[]> {
    const members = those.map((start) => start());
    await Promise.all(members.map(({ started }) => started));
    return members;
  }

  it('are all told of when one of them blocks for a while', async () => {
    // Told of after 4 s of the clock, ended after 12.
    const clock = quickClock(2);
    const wait = "if (word === 'rest') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_500);";
    const [rose] = await up(await member('rose', wait, { clock }), await member('tulip', '', { clock }));
    await rose!.ask('rest');
    const noted = (): readonly string[] =>
      said.entries.flatMap(({ reason }) => (typeof reason === 'string' ? reason : []));
    await until('both are told of', () => noted().length === 2, PATIENCE);
    for (const one of noted()) assert.match(one, /did not answer for about .*; it was one of rose, tulip$/);
  });

  it('are in one process, those of other permissions in another', async () => {
    const [rose, tulip, reed] = await up(
      await member('rose'),
      await member('tulip', '', { permissions: STATUS.toReversed() }),
      await member('reed', '', { permissions: ['read-status'] }),
    );
    assert.equal(await rose!.pid(), await tulip!.pid());
    assert.notEqual(await rose!.pid(), await reed!.pid());
    assert.deepEqual([await rose!.ask('a'), await tulip!.ask('b'), await reed!.ask('c')], ['a', 'b', 'c']);
  });

  it('are not ended for one that keeps too much: it does not come', async () => {
    const space = { ...SPACE, mostBytes: 1_048_576, everyMs: 1 };
    await mkdir(scratch.path('store', 'pond'), { recursive: true });
    await writeFile(scratch.path('store', 'pond', 'large'), Buffer.alloc(2_000_000, 1));
    const [reed, pond] = [await member('reed', '', { space }), await member('pond', '', { space })].map(
      (start) => start(),
    );
    await assert.rejects(
      pond!.started,
      /^Error: it keeps more than 1 MiB or 50000 files in .*store\/pond, or/,
    );
    await reed!.started;
    const command = await readFile(`/proc/${await reed!.pid()}/cmdline`, 'utf8');
    assert.match(command, /store\/reed/);
    assert.doesNotMatch(command, /store\/pond/);
  });

  it('keep files in their own folders, and nowhere else', async () => {
    const keep = "if (word.startsWith('/')) await writeFile(word, 'kept');";
    const [rose, tulip] = await up(await member('rose', keep), await member('tulip', keep));
    for (const [one, name] of [
      [rose, 'rose'],
      [tulip, 'tulip'],
    ] as const) {
      const file = `${ownFolder({ stateDir: scratch.root, name })}/note`;
      await one!.ask(file);
      assert.equal(await readFile(file, 'utf8'), 'kept');
      const stranger = `${ownFolder({ stateDir: scratch.root, name: 'reed' })}/note`;
      await assert.rejects(one!.ask(stranger), /without the permission "files"/);
    }
  });

  for (const [how, does, reason] of [
    ['an exit', 'setImmediate(() => process.exit(3));', 'it called process.exit(3)'],
    [
      'an error that nobody caught',
      "setImmediate(() => { throw new Error('blight'); });",
      'it broke off with an error that nobody caught: blight',
    ],
    [
      'an error without a place',
      'setImmediate(() => { throw null; });',
      'it broke off with an error that nobody caught: it threw null, which is no error',
    ],
  ] as const)
    it(`are all ended by ${how} of one, which is named; all come back`, async () => {
      const [rose, tulip] = await up(
        await member('rose', `if (word === 'end') { ${does} await new Promise(() => undefined); }`),
        await member('tulip'),
      );
      const before = await tulip!.pid();
      await assert.rejects(rose!.ask('end'), /its process has ended/);
      await until('both are back', async () => rose!.supervisor.isUp && tulip!.supervisor.isUp, PATIENCE);
      assert.equal(await rose!.pid(), await tulip!.pid());
      assert.notEqual(await tulip!.pid(), before);
      const [own] = rose!.absences.filter((one) => one !== undefined);
      const [others] = tulip!.absences.filter((one) => one !== undefined);
      assert.ok(own?.startsWith(`its process ended (${reason}`), own);
      assert.ok(
        others?.startsWith(`its process ended ("rose", with which it shares it, has ended it: ${reason}`),
        others,
      );
      assert.deepEqual([rose!.crashes.length, tulip!.crashes.length], [1, 0]);
    });

  it('are ended by an error without a place that a route of one began, which is named', async () => {
    const handler = '() => { setImmediate(() => { throw null; }); return "lit"; }';
    const [rose, tulip] = await up(
      await member('rose', '', { more: `ctx.route({ method: 'GET', path: '/', handler: ${handler} });` }),
      await member('tulip'),
    );
    const request = { method: 'GET', url: '/ext/rose', headers: {}, body: '', remoteAddress: '127.0.0.1' };
    await rose!.supervisor.call('route', 0, [request]);
    await until('it has ended', async () => rose!.crashes.length > 0, PATIENCE);
    await until('both are back', async () => rose!.supervisor.isUp && tulip!.supervisor.isUp, PATIENCE);
    assert.deepEqual([rose!.crashes.length, tulip!.crashes.length], [1, 0]);
    assert.match(
      tulip!.absences.find((one) => one !== undefined) ?? '',
      /"rose", with which it shares it, has ended it: it broke off with .* it threw null/,
    );
  });

  it("are told where in the guilty one's own files it was", async () => {
    const [rose] = await up(
      await member('rose', "if (word === 'end') { setImmediate(() => globalThis.prick()); }"),
      await member('tulip', '', { more: "globalThis.prick = () => { throw new Error('thorn'); };" }),
    );
    await rose!.ask('end');
    await until('it is told', async () => rose!.absences.some((one) => one !== undefined), PATIENCE);
    // Its tap; the other one throws in the line before.
    assert.match(rose!.absences.find((one) => one !== undefined) ?? '', /thorn \(at index\.js:5:\d+\)/);
    await until('it is back', async () => rose!.supervisor.isUp, PATIENCE);
  });

  it('are all named where nobody knows which it was', async () => {
    const [rose, tulip] = await up(
      await member('rose', "if (word === 'end') process.kill(process.pid, 'SIGKILL');"),
      await member('tulip'),
    );
    await assert.rejects(rose!.ask('end'), /its process has ended/);
    await until('both are back', async () => rose!.supervisor.isUp && tulip!.supervisor.isUp, PATIENCE);
    for (const { absences, crashes } of [rose!, tulip!]) {
      assert.match(
        absences.find((one) => one !== undefined) ?? '',
        /one of rose, tulip, which share it, has ended it: it was ended by SIGKILL/,
      );
      assert.equal(crashes.length, 1);
    }
  });

  it('are all named where the process names one that is not among them', async () => {
    const forged = JSON.stringify({ is: 'broke', reason: 'thorns', by: 'nettle' });
    const [rose, tulip] = await up(
      await member(
        'rose',
        `if (word === 'end') {
          const length = Buffer.alloc(4);
          length.writeUInt32BE(${forged.length});
          writeSync(3, Buffer.concat([length, Buffer.from('${forged}')]));
          process.kill(process.pid, 'SIGKILL');
        }`,
      ),
      await member('tulip'),
    );
    await assert.rejects(rose!.ask('end'), /its process has ended/);
    await until('both are back', async () => rose!.supervisor.isUp && tulip!.supervisor.isUp, PATIENCE);
    for (const { absences, crashes } of [rose!, tulip!]) {
      assert.match(
        absences.find((one) => one !== undefined) ?? '',
        /one of rose, tulip, which share it, has ended it: thorns/,
      );
      assert.equal(crashes.length, 1);
    }
  });

  it('wait for their own calls alone', async () => {
    const hang = "if (word === 'hang') await new Promise(() => undefined);";
    const [rose, tulip] = await up(await member('rose', hang), await member('tulip'));
    const hanging = Array.from({ length: 200 }, () => assert.rejects(rose!.ask('hang'), /it has ended/));
    await assert.rejects(rose!.ask('one more'), /200 calls before this one have no answer yet/);
    assert.equal(await tulip!.ask('free'), 'free');
    await rose!.supervisor.stop('reload');
    await Promise.all(hanging);
  });

  it('stay when one of them is loaded anew, and its calls without an answer end', async () => {
    const hang = "if (word === 'hang') await new Promise(() => undefined);";
    const [rose, tulip] = await up(await member('rose', hang), await member('tulip'));
    const before = await tulip!.pid();
    const hanging = assert.rejects(rose!.ask('hang'), /it has ended/);
    await rose!.supervisor.stop('reload');
    await hanging;
    const [anew] = await up(await member('rose', "if (word === 'new') return 'new petals';"));
    assert.equal(await anew!.ask('new'), 'new petals');
    assert.deepEqual([await anew!.pid(), await tulip!.pid()], [before, before]);
    assert.deepEqual(tulip!.absences, [undefined]);
  });

  it('are begun anew when one goes that does not even read that it is to go', async () => {
    const block = "if (word === 'block') for (;;);";
    const [rose, tulip] = await up(await member('rose', block), await member('tulip'));
    const before = await tulip!.pid();
    const refused = [rose!.ask('block')];
    let isFull = false;
    while (!isFull) {
      const asked = rose!.ask('x'.repeat(100_000));
      refused.push(asked);
      isFull = await Promise.race([
        asked.catch(({ message }: Error) => message.includes('does not take calls')),
        new Promise<boolean>((resolve) => setImmediate(resolve, false)),
      ]).then(Boolean);
    }
    const over = Promise.allSettled(refused);
    await rose!.supervisor.stop('reload');
    await over;
    await until('the other is back', async () => tulip!.supervisor.isUp, PATIENCE);
    assert.notEqual(await tulip!.pid(), before);
    assert.match(
      tulip!.absences.find((one) => one !== undefined) ?? '',
      /it is renewed, since "rose" could not let go of what it holds: one of rose, tulip loops or blocks/,
    );
  });

  it('are all named where one cannot go since another blocks, and that one alone where none does', async () => {
    const [rose, tulip, reed] = await up(
      await member(
        'rose',
        "if (word === 'rest') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 8_000);",
      ),
      await member('tulip'),
      await member('reed', '', {
        // Each has four seconds to go.
        more: `for (const one of ['roots', 'stem'])
          ctx.effect(one, () => () => new Promise((resolve) => setTimeout(resolve, 60_000)));`,
      }),
    );
    const said = (): string => rose!.absences.findLast((one) => one !== undefined) ?? '';
    const rested = rose!.ask('rest').catch(() => undefined);
    await tulip!.supervisor.stop('reload');
    await rested;
    assert.match(said(), /since "tulip" could not let go of what it holds: one of reed, rose, tulip loops/);
    await until('the others are back', async () => rose!.supervisor.isUp && reed!.supervisor.isUp, PATIENCE);
    await reed!.supervisor.stop('reload');
    assert.match(said(), /since "reed" did not let go of what it holds/);
  });

  it('are begun anew, without one that has gone for good, and with one that comes later', async () => {
    const leak = 'setInterval(() => { globalThis.leaked = (globalThis.leaked ?? 0) + 1; }, 10);';
    const [rose, tulip] = await up(
      await member('rose', '', { more: leak }),
      await member('tulip', "if (word === 'leaked') return globalThis.leaked ?? 0;"),
    );
    const first = await tulip!.pid();
    await until('it leaks', async () => Number(await tulip!.ask('leaked')) > 0, PATIENCE);
    await rose!.supervisor.stop('disable');
    await until('the other is back', async () => tulip!.supervisor.isUp, PATIENCE);
    assert.equal(await tulip!.ask('leaked'), 0);
    const second = await tulip!.pid();
    assert.notEqual(second, first);
    const [reed] = await up(await member('reed', '', { isExpected: false }));
    await until('the other is back again', async () => tulip!.supervisor.isUp, PATIENCE);
    assert.notEqual(await reed!.pid(), second);
    assert.equal(await tulip!.pid(), await reed!.pid());
    assert.deepEqual(
      tulip!.absences.filter((one) => one !== undefined),
      ['"rose" has left it', '"reed" comes to it'].map(
        (why) => `its process ended (it is renewed, since ${why}); it is started anew after 0 s`,
      ),
    );
    assert.deepEqual(tulip!.crashes, []);
    const errors = said.entries.filter(({ level }) => Number(level) >= 50);
    assert.deepEqual(errors, [], 'a renewal is planned');
  });

  it('have no access to what one had that has gone for good, also where it was the last', async () => {
    const [rose] = await up(await member('rose'));
    await rose!.supervisor.stop('disable');
    const [tulip] = await up(await member('tulip', "if (word !== 'pid') await writeFile(word, 'kept');"));
    const strange = `${ownFolder({ stateDir: scratch.root, name: 'rose' })}/note`;
    await assert.rejects(tulip!.ask(strange), /without the permission "files"/);
  });

  it('have no access to what one had that was switched off while it waited to come back', async () => {
    const [rose] = await up(await member('rose', "if (word === 'end') process.exit(1);"));
    await assert.rejects(rose!.ask('end'), /its process has ended/);
    await until('it waits', async () => !rose!.supervisor.isUp, PATIENCE);
    await rose!.supervisor.stop('disable');
    const [tulip] = await up(await member('tulip', "if (word !== 'pid') await writeFile(word, 'kept');"));
    const strange = `${ownFolder({ stateDir: scratch.root, name: 'rose' })}/note`;
    await assert.rejects(tulip!.ask(strange), /without the permission "files"/);
  });

  for (const reason of ['shutdown', 'handover'] as const)
    it(`do not come back in a ${reason}, though one of them blocks`, async () => {
      const real = createClock();
      // What it is given to let go, and to end.
      const after: Clock['after'] = (ms, fn, how) => real.after(ms === 5_000 ? 300 : ms, fn, how);
      const clock: Clock = { ...real, after };
      const [rose, tulip] = await up(
        await member('rose', "if (word === 'block') for (;;);", { clock }),
        await member('tulip', '', { clock }),
      );
      const pid = await tulip!.pid();
      const blocked = assert.rejects(rose!.ask('block'), /it has ended/);
      await rose!.supervisor.stop(reason);
      await blocked;
      assert.deepEqual([isAlive(pid), tulip!.supervisor.isUp], [false, false]);
      await tulip!.supervisor.stop(reason);
      assert.deepEqual(tulip!.absences, [undefined, undefined], 'it came up, and it was stopped');
    });

  it('are begun anew when one of them does not come up, and their process ends with the last', async () => {
    const frost = "ctx.effect('bed', () => { throw new Error('frost'); });";
    const starts = [await member('tulip'), await member('reed'), await member('rose', '', { more: frost })];
    const [tulip] = await up(starts[0]!);
    const first = await tulip!.pid();
    await assert.rejects(starts[2]!().started, /frost/);
    await until('nothing of it runs', async () => !isAlive(first), PATIENCE);
    const [reed] = await up(starts[1]!);
    await until('the other is back', async () => tulip!.supervisor.isUp, PATIENCE);
    const pid = await tulip!.pid();
    assert.notEqual(pid, first);
    assert.equal(await reed!.pid(), pid);
    assert.deepEqual(
      tulip!.absences.filter((one) => one !== undefined),
      ['its process ended (it is renewed, since "rose" has failed); it is started anew after 0 s'],
    );
    assert.deepEqual(tulip!.crashes, []);
    await tulip!.supervisor.stop('shutdown');
    assert.equal(isAlive(pid), true);
    await reed!.supervisor.stop('shutdown');
    assert.equal(isAlive(pid), false);
  });

  it('come up though another one ends the process meanwhile', async () => {
    const slow =
      "ctx.effect('bed', () => new Promise((resolve) => setTimeout(resolve, 1500, () => undefined)));";
    const rose = await member('rose', "if (word === 'end') { setTimeout(() => process.exit(1), 50); }");
    const tulip = await member('tulip', '', { more: slow });
    const [quick] = await up(rose);
    const late = tulip();
    await quick!.ask('end');
    await late.started;
    assert.deepEqual(late.crashes, []);
    await until('both are there', async () => quick!.supervisor.isUp, PATIENCE);
    assert.equal(await late.pid(), await quick!.pid());
  });
});
