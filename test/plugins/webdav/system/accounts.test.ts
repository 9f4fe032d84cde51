/** What the daemon finds out about users of the machine, with programs that say what the test wants. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { ShortCommand, ShortCommandResult } from 'mountkeeper';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { SystemAccounts } from '../../../../plugins/webdav/system/accounts.ts';
import type { SystemAccountsOptions } from '../../../../plugins/webdav/system/accounts.ts';
import { membersOf, SystemGroup } from '../../../../plugins/webdav/system/group.ts';
import { isRightPassword } from '../../../../plugins/webdav/system/password.ts';

const PASSWD = `
root:x:0:0:root:/root:/bin/bash
toor:x:0:0::/:/bin/sh
daemon:x:1:1::/:/usr/sbin/nologin
nora:x:1000:1000::/home/nora:/bin/bash
otto:x:200000:1000::/home/otto:/bin/bash
noé:x:1001:1001::/home/noe:/bin/bash
nobody:x:65534:65534::/:/usr/sbin/nologin
`.trim();

let ran: ShortCommand[];
let groups: string;
let accounts: string;
let code: number;
const processes = {
  run: (command: ShortCommand): Promise<ShortCommandResult> => {
    ran.push(command);
    const [database = '', , ...keys] = command.args;
    const lines = (database === 'group' ? groups : accounts)
      .split('\n')
      .filter((line) => keys.some((key) => line.startsWith(`${key}:`)));
    return Promise.resolve({ code, signal: null, stdout: `${lines.join('\n')}\n`, stderr: '' });
  },
};

describe('users of the machine, as the daemon finds out about them', () => {
  beforeEach(() => {
    [ran, code, accounts] = [[], 0, PASSWD];
    groups = 'people:x:2000:otto,nora,root,toor,daemon,nobody,gone,--help,a b\nnone:x:2001:';
  });

  describe('the group of the machine whose members may come in', () => {
    it('holds people alone: never root under any name, a service, nobody, or who is gone', async () => {
      code = 2;
      assert.deepEqual(await membersOf('people', processes), ['nora', 'otto']);
      assert.deepEqual(await membersOf('none', processes), []);
      for (const { args } of ran) assert.ok(args[1] === '--' && !args.includes('--help'), args.join(' '));
    });

    it('is missing where another one answers, or none', async () => {
      await assert.rejects(membersOf('2000', processes), /no group "2000"/);
      code = 1;
      await assert.rejects(membersOf('people', processes), /getent ended with 1/);
    });

    it('is read every five seconds, and stays as it was while the machine does not say', async () => {
      const clock = createManualClock();
      const group = new SystemGroup({ clock, processes });
      await group.read('people');
      assert.deepEqual([group.members('people'), group.members('none')], [['nora', 'otto'], undefined]);
      groups = groups.replace('otto,nora', 'otto');
      await group.read('people');
      assert.deepEqual(group.members('people'), ['nora', 'otto']);
      await clock.advance(5_000);
      await group.read('people');
      assert.deepEqual(group.members('people'), ['otto']);
      code = 1;
      await clock.advance(5_000);
      await group.read('people');
      assert.deepEqual(group.members('people'), ['otto']);
      assert.match(group.problem ?? '', /getent ended with 1/);
      await group.read('none');
      assert.deepEqual([group.members('people'), group.members('none')], [undefined, undefined]);
      await group.read(undefined);
      assert.deepEqual([group.members(undefined), group.problem], [[], undefined]);
    });

    it('keeps its members while a directory that is started knows nobody, and has none left once deleted', async () => {
      const clock = createManualClock();
      const group = new SystemGroup({ clock, processes });
      const read = async (): Promise<readonly [readonly string[] | undefined, string | undefined]> => {
        await clock.advance(5_000);
        await group.read('people');
        return [group.members('people'), group.problem];
      };
      const same = ['nora', 'otto'];
      assert.deepEqual(await read(), [same, undefined]);
      [accounts, code] = ['', 2];
      for (let count = 0; count < 10; count += 1) {
        const [members, problem = ''] = await read();
        assert.deepEqual(members, same);
        assert.match(problem, /no account of the members .* stays one$/);
      }
      const all = groups;
      for (let round = 0; round < 2; round += 1) {
        groups = '';
        for (let count = 0; count < 5; count += 1) {
          const [members, problem = ''] = await read();
          assert.deepEqual(members, same, `${count}`);
          assert.match(problem, /does not find the group "people" .* just now: .* half a minute$/);
        }
        [groups, accounts] = [all, PASSWD];
        if (round === 0) assert.deepEqual(await read(), [same, undefined]);
      }
      groups = '';
      const [members, problem = ''] = await read();
      assert.deepEqual(members, []);
      assert.match(problem, /no group "people"/);
    });

    it('is not known before the machine has said who is in it', async () => {
      const group = new SystemGroup({ clock: createManualClock(), processes });
      const all = groups;
      [groups, code] = ['', 2];
      await group.read('people');
      assert.equal(group.members('people'), undefined);
      [groups, accounts] = [all, ''];
      await group.read('none');
      await group.read('people');
      assert.equal(group.members('people'), undefined);
    });

    it('lends nobody the name of a user of the configuration, whose password may not be known', async () => {
      groups = 'people:x:2000:otto,nora,noé';
      const users = ['nora', 'noé'.normalize('NFD')].map((name) => ({ name, password: { env: 'GONE' } }));
      const system = new SystemAccounts({
        clock: createManualClock(),
        processes,
        config: () => ({ webdav: { system_group: 'people', users } }),
      } as unknown as SystemAccountsOptions);
      await system.read();
      assert.deepEqual(system.members('people'), ['otto']);
    });
  });

  describe('the password of a user of the machine', () => {
    const nora = { name: 'nora', password: 'a: b' };

    it('is handed to the program on its input alone', async () => {
      assert.equal(await isRightPassword(nora, processes), true);
      assert.deepEqual(
        ran.map(({ args, input, env }) => [args, input, env]),
        [[[], 'nora\na: b\n', undefined]],
      );
    });

    it('is wrong for each reason that the program gives, and unknown where it could not ask', async () => {
      for (code = 1; code <= 7; code += 1) assert.equal(await isRightPassword(nora, processes), false);
      for (code of [50, 51, 52, 53, 126]) await assert.rejects(isRightPassword(nora, processes), /PAM/);
    });

    it("is never asked about when it is empty, or would make a line of another account's", async () => {
      for (const asked of [
        { name: 'nora', password: '' },
        { name: 'nora\notto', password: 'p' },
        { name: 'nora', password: 'p\n' },
      ])
        assert.equal(await isRightPassword(asked, processes), false);
      assert.deepEqual(ran, []);
    });
  });
});
