import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { FoundNas, SetupAnswers, SetupService } from '../../../core/contract/config-changes.ts';
import type { PluginContext } from '../../../core/contract/plugin.ts';
import { callsOf } from '../../../plugins/setup/requests.ts';
import { routes } from '../../../plugins/setup/routes.ts';

describe('the look for a NAS in the network', () => {
  it('is one for all who ask meanwhile, and a new one for who asks later', async () => {
    const looks: ((found: readonly FoundNas[]) => void)[] = [];
    const finder = { find: () => new Promise<readonly FoundNas[]>((resolve) => looks.push(resolve)) };
    const ctx = { use: () => ({}), find: () => finder, signal: new AbortController().signal };
    const route = routes(ctx as unknown as PluginContext).find(({ path }) => path === '/api/setup/found');
    const ask = (route ?? assert.fail('no such route')).handler as unknown as () => Promise<object>;
    const both = Promise.all([ask(), ask()]);
    assert.equal(looks.length, 1);
    const nas: FoundNas = { kind: 'smb', name: 'attic', address: '192.0.2.7' };
    looks[0]?.([nas]);
    assert.deepEqual(await both, [{ found: [nas] }, { found: [nas] }]);
    const later = ask();
    assert.equal(looks.length, 2);
    looks[1]?.([]);
    assert.deepEqual(await later, { found: [] });
  });
});

it('whoever is set up anew under a name that people sign in by already hears that the password stays', async () => {
  const known = new Set(['ada']);
  const setup: Partial<SetupService> = {
    shareNames: () => ['photos'],
    addresses: () => [],
    knowsUser: (user) => known.has(user),
    apply: async ({ lan }) => {
      known.add(lan?.user ?? '');
      return { ok: true, status: 200, message: '', summary: null, version: '1' };
    },
  };
  const calls = callsOf(setup as SetupService, () => undefined, 'api');
  const answers = (user: string): SetupAnswers => ({
    nas: { kind: 'smb', address: 'nas', user: 'x', password: 'y' },
    folders: ['Photos'],
    lan: { user, password: 'new' },
  });
  const kept = [];
  for (const user of ['ada', 'bob', 'bob']) kept.push((await calls.apply(answers(user))).user_kept);
  assert.deepEqual(kept, [true, false, true]);
});

it('whoever sets up a NAS with a password and no user is refused with a sentence, and nothing is applied', async () => {
  const setup: Partial<SetupService> = {
    shareNames: () => ['photos'],
    apply: () => assert.fail('applied'),
  };
  const nas = { kind: 'smb', address: 'nas', user: '', password: 'y' } as const;
  const calls = callsOf(setup as SetupService, () => undefined, 'api');
  const { ok, message, shares } = await calls.apply({ nas, folders: ['Photos'] });
  assert.deepEqual([ok, shares], [false, []]);
  assert.match(message, /whose password this is/);
});
