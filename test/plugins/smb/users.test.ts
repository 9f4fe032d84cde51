/** Whose password smbd knows, and whose sessions end with it. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Logger, Processes, ShortCommand } from 'mountkeeper';
import { smbPaths } from '../../../plugins/smb/paths.ts';
import { PasswordFiles } from '../../../plugins/smb/users/password-files.ts';
import { settleUsers, unsureUsers } from '../../../plugins/smb/users/users.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';

async function setUp(t: TestContext) {
  const scratch = await createScratch('smb-users-unit');
  t.after(() => scratch.close());
  const paths = smbPaths(scratch.root);
  await mkdir(paths.folder('private'), { recursive: true });
  /** Users whose password cannot be set. */
  const deaf = new Set<string>();
  /** What smbd lets users in by. */
  const database = new Map<string, string>();
  const did: string[] = [];
  const warned: string[] = [];
  /** Why nobody could look at the database, of each time that users were settled. */
  const looks: (string | undefined)[] = [];
  /** Options with which pdbedit fails. */
  const failing = new Set<string>();
  /** Those with which it does once a password has been set. */
  const failingLater = new Set<string>();
  let asked = 0;
  let mayChange = true;
  const look = (args: readonly string[]): string => {
    if (args.includes('-P')) mayChange = false;
    const lines = [...database].map(([user, hash]) => `${user.toUpperCase()}:1:X:${hash}:[U ]:LCT-1:`);
    return `${lines.join('\n')}\n`;
  };
  const set = (name: string, input?: string): void => {
    database.set(name, `hash of ${input}`.replaceAll('\n', ' '));
    for (const option of failingLater) failing.add(option);
  };
  const run = async ({ command, args, input }: ShortCommand) => {
    const name = args.at(-1) ?? '';
    if (args.includes('-P') || args.includes('-L')) asked += 1;
    if (args.some((option) => failing.has(option))) return { code: 1, stdout: '', stderr: 'disk full' };
    if (args.includes('-P') || args.includes('-L')) return { code: 0, stdout: look(args), stderr: '' };
    did.push(`${command} ${name}`);
    await writeFile(paths.passdb, '');
    assert.match(await readFile(paths.users, 'utf8'), new RegExp(`"${name}"`), 'is known before a tool runs');
    if (command === 'smbpasswd') {
      assert.equal(mayChange, false, 'nobody may change it by the time that it is set');
      if (deaf.has(name)) return { code: 1, stdout: '', stderr: 'no' };
      set(name, String(input));
    } else database.delete(name);
    return { code: 0, stdout: '', stderr: '' };
  };
  const cut = async (users: readonly string[]) => void did.push(`cut ${users.join()}`);
  const settle = async (passwords: Readonly<Record<string, string>>) => {
    const { failures, unseen } = await settleUsers(new Map(Object.entries(passwords)), {
      paths,
      processes: { run } as unknown as Processes,
      env: {},
      log: { warn: (about: { user: string }) => warned.push(about.user) } as unknown as Logger,
      owner: { uid: 0, gid: 0 },
      cut,
    });
    looks.push(unseen);
    return [...failures.keys(), '|', ...did.splice(0)].join(' ');
  };
  return {
    paths,
    database,
    warned,
    deaf,
    failing,
    failingLater,
    looks,
    asked: () => asked,
    settle,
    unsure: async () => [...(await unsureUsers(paths))].join(),
  };
}

describe('passwords of smbd', () => {
  it('are set once, again where they change, and taken away with their user', async (t) => {
    const { settle } = await setUp(t);
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '| smbpasswd anna smbpasswd ben');
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '|');
    assert.equal(await settle({ anna: 'a', ben: 'c' }), '| smbpasswd ben');
    assert.equal(await settle({ anna: 'a' }), '| pdbedit ben cut ben');
    assert.equal(await settle({ anna: 'a', ben: 'c' }), '| smbpasswd ben');
  });

  it('that cannot be set are tried again, and their users can still be thrown out', async (t) => {
    const { deaf, settle, unsure } = await setUp(t);
    await settle({ anna: 'a', ben: 'b' });
    assert.equal(await unsure(), '');
    deaf.add('ben');
    assert.equal(await settle({ anna: 'a', ben: 'c' }), 'ben | smbpasswd ben');
    assert.equal(await unsure(), 'ben', 'also for the next daemon');
    assert.equal(await settle({ anna: 'a', ben: 'c' }), 'ben | smbpasswd ben');
    // Her former one again: nobody knows whether the database has it.
    assert.equal(await settle({ anna: 'a', ben: 'b' }), 'ben | smbpasswd ben');
    assert.equal(await settle({ anna: 'a' }), '| pdbedit ben cut ben');
    assert.equal(await settle({ ben: 'b' }), 'ben | pdbedit anna cut anna smbpasswd ben');
    deaf.clear();
    assert.equal(await settle({ ben: 'b' }), '| smbpasswd ben');
    assert.equal(await unsure(), '');
    assert.equal(await settle({}), '| pdbedit ben cut ben');
  });
});

describe('a password database that nobody can look at', () => {
  for (const option of ['-P', '-L'])
    it(`lets in nobody by a former password, and removed users are out: pdbedit ${option}`, async (t) => {
      const { failing, looks, settle, unsure } = await setUp(t);
      await settle({ anna: 'a', ben: 'b', carl: 'c' });
      failing.add(option);
      assert.equal(await settle({ anna: 'a', ben: 'b2' }), 'ben | pdbedit carl cut carl');
      assert.equal(await unsure(), 'ben', 'also for the next daemon');
      assert.equal(await settle({ anna: 'a', ben: 'b2', dora: 'd' }), 'ben dora |');
      assert.equal(
        await settle({ anna: 'a', ben: 'b' }),
        'ben | pdbedit dora cut dora',
        'his former one again',
      );
      failing.clear();
      assert.equal(await settle({ anna: 'a', ben: 'b2' }), '| smbpasswd ben');
      assert.equal(await unsure(), '');
      const reason = 'pdbedit failed: disk full';
      assert.deepEqual(looks, [undefined, reason, reason, reason, undefined]);
    });

  it('lets in nobody whose password was set, but could not be read back, and sets it again', async (t) => {
    const { failing, failingLater, settle, unsure, warned } = await setUp(t);
    await settle({ anna: 'a', ben: 'b' });
    failingLater.add('-L');
    assert.equal(await settle({ anna: 'a', ben: 'b2' }), 'ben | smbpasswd ben');
    assert.equal(await unsure(), 'ben');
    failing.clear();
    failingLater.clear();
    assert.equal(await settle({ anna: 'a', ben: 'b2' }), '| smbpasswd ben');
    assert.equal(await settle({ anna: 'a', ben: 'b2' }), '|');
    assert.deepEqual(warned, []);
  });

  it('keeps nobody out whose password is the one that was set', async (t) => {
    const { database, failing, looks, settle, unsure, warned } = await setUp(t);
    await settle({ anna: 'a', ben: 'b' });
    failing.add('-P');
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '|');
    assert.equal(await unsure(), '');
    assert.equal(looks.at(-1), 'pdbedit failed: disk full');
    database.set('ben', 'hash of his own');
    failing.clear();
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '| smbpasswd ben', 'seen as soon as it can be');
    assert.deepEqual(warned, ['ben']);
  });

  it('keeps out whom a former version let in, which let users change theirs', async (t) => {
    const { failing, paths, settle, unsure } = await setUp(t);
    await settle({ anna: 'a' });
    const { salt, marks } = JSON.parse(await readFile(paths.users, 'utf8')) as Record<string, unknown>;
    await writeFile(paths.users, JSON.stringify({ salt, marks }));
    failing.add('-P');
    assert.equal(await settle({ anna: 'a' }), 'anna |');
    assert.equal(await unsure(), 'anna');
  });

  it('is not looked at without users', async (t) => {
    const { asked, failing, settle, looks } = await setUp(t);
    failing.add('-P');
    assert.equal(await settle({}), '|');
    assert.deepEqual([asked(), looks], [0, [undefined]]);
  });
});

describe('passwords in the database that somebody else has set', () => {
  it('are set anew, with a warning', async (t) => {
    const { database, settle, warned } = await setUp(t);
    await settle({ anna: 'a', ben: 'b' });
    database.set('ben', 'hash of his own');
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '| smbpasswd ben');
    assert.deepEqual(warned.splice(0), ['ben']);
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '|');
    database.delete('anna');
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '| smbpasswd anna');
    assert.deepEqual(warned.splice(0), ['anna']);
    assert.equal(await settle({ anna: 'a2' }), '| pdbedit ben cut ben smbpasswd anna');
    assert.deepEqual(warned, [], 'one who has another password, or goes, is no news');
  });

  it('may be any of those that a former version set: all are set once', async (t) => {
    const { paths, settle, warned } = await setUp(t);
    await settle({ anna: 'a', ben: 'b' });
    const { salt, marks } = JSON.parse(await readFile(paths.users, 'utf8')) as Record<string, unknown>;
    await writeFile(paths.users, JSON.stringify({ salt, marks }));
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '| smbpasswd anna smbpasswd ben');
    assert.equal(await settle({ anna: 'a', ben: 'b' }), '|');
    assert.deepEqual(warned, []);
  });
});

describe('files with passwords', () => {
  it('are others once two looks have found the same change, until they are read', async (t) => {
    const scratch = await createScratch('smb-password-files');
    t.after(() => scratch.close());
    const file = scratch.path('anna');
    await writeFile(file, 'one');
    const files = new PasswordFiles([
      { name: 'anna', password: { file } },
      { name: 'ben', password: 'in the document' },
    ]);
    const looks = async () => [await files.haveChanged(), await files.haveChanged()];
    assert.deepEqual(await looks(), [false, false], 'nobody has read them yet');
    await files.aboutToRead();
    assert.deepEqual(await looks(), [false, false]);
    await writeFile(file, 'two');
    assert.equal(await files.haveChanged(), false, 'it may be half of it');
    await writeFile(file, 'three');
    assert.deepEqual(await looks(), [false, true]);
    assert.equal(await files.haveChanged(), true);
    await files.aboutToRead();
    assert.deepEqual(await looks(), [false, false]);
    await writeFile(file, '');
    assert.deepEqual(await looks(), [false, false], 'empty: it is just being written');
    await rm(file);
    assert.deepEqual(await looks(), [false, false], 'away: its user would be thrown out');
    await writeFile(file, 'four');
    assert.deepEqual(await looks(), [false, true]);
  });
});
