import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { StoredDocument, StoreService } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.js';
import { PluginStore } from '../../../../core/plugins/instance/store.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { small } from '../../../support/plugins/small-plugins.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

interface Visits {
  readonly count: number;
  readonly names: readonly string[];
}
const NONE: Visits = { count: 0, names: [] };

describe('what a plugin keeps', () => {
  let scratch: Scratch;
  const { log, entries } = collectLog();
  before(async () => {
    scratch = await createScratch('store');
  });
  after(() => scratch.close());

  const store = (plugin = 'garden'): StoreService =>
    new PluginStore({ stateDir: scratch.path('state'), clock: createClock(), log }).of(plugin);
  const file = (name: string): string => scratch.path(`state/store/garden/${name}.json`);

  it('is there again after a restart, and no other plugin sees it', async () => {
    const visits = await store().open('visits', { version: 1, initial: NONE });
    assert.deepEqual(visits.value, NONE);
    await visits.save({ count: 1, names: ['照片'] });
    assert.deepEqual((await store().open('visits', { version: 1, initial: NONE })).value, {
      count: 1,
      names: ['照片'],
    });
    assert.deepEqual((await store('cellar').open('visits', { version: 1, initial: NONE })).value, NONE);
  });

  it('is changed by saving alone', async () => {
    const list = await store().open('list', { version: 1, initial: { names: ['a'] } });
    list.value.names.push('b');
    assert.deepEqual(list.value, { names: ['a'] });
    const given = { names: ['c'] };
    await list.save(given);
    given.names.push('d');
    assert.deepEqual(list.value, { names: ['c'] });
  });

  it('is what was saved last, in whatever order the disk was quick', async () => {
    const count = await store().open('count', { version: 1, initial: 0 });
    await Promise.all(Array.from({ length: 20 }, (_, index) => count.save(index)));
    assert.equal(count.value, 19);
    assert.deepEqual(JSON.parse(await readFile(file('count'), 'utf8')), { version: 1, value: 19 });
  });

  it('is made anew for a later version of the plugin, once, and refused to an earlier one', async () => {
    await (await store().open('form', { version: 1, initial: { total: 1 } })).save({ total: 7 });
    let calls = 0;
    const migrate = (value: unknown, version: number): Visits => {
      calls += 1;
      return { count: (value as { total: number }).total, names: [`from ${version}`] };
    };
    const open = (): Promise<StoredDocument<Visits>> =>
      store().open('form', { version: 3, initial: NONE, migrate });
    assert.deepEqual(
      [(await open()).value, (await open()).value, calls],
      [{ count: 7, names: ['from 1'] }, { count: 7, names: ['from 1'] }, 1],
    );
    await assert.rejects(
      store().open('form', { version: 2, initial: NONE }),
      /written by a later version of the plugin \(3; this one knows 2\)/,
    );
  });

  it('stays as it was when it cannot be made anew', async () => {
    await (await store().open('stuck', { version: 1, initial: 1 })).save(5);
    await assert.rejects(
      store().open('stuck', {
        version: 2,
        initial: 1,
        migrate: () => {
          throw new Error('no idea');
        },
      }),
      /no idea/,
    );
    assert.equal((await store().open('stuck', { version: 1, initial: 1 })).value, 5);
  });

  it('is laid aside when it is no document any more', async () => {
    await mkdir(scratch.path('state/store/garden'), { recursive: true });
    await writeFile(file('torn'), '{"version":1,"val');
    assert.equal((await store().open('torn', { version: 1, initial: 'new' })).value, 'new');
    const aside = (await readdir(scratch.path('state/store/garden'))).filter((name) =>
      name.startsWith('torn.json.broken-'),
    );
    assert.equal(
      await readFile(scratch.path('state/store/garden', aside[0] ?? ''), 'utf8'),
      '{"version":1,"val',
    );
    assert.ok(
      entries.some(
        (line) =>
          line['plugin'] === 'garden' && String(line['msg']).startsWith('a document of a plugin is damaged'),
      ),
    );
  });

  it('is JSON of a bounded size, under a name that leads nowhere else', async () => {
    const small = await store().open('small', { version: 1, initial: 'x' });
    await assert.rejects(small.save('x'.repeat(1_048_576)), /larger than 1048576 bytes/);
    await assert.rejects(small.save(undefined as never), /not JSON/);
    assert.equal(small.value, 'x');
    for (const name of ['../x', 'a/b', '', 'A', '.x'])
      await assert.rejects(store().open(name, { version: 1, initial: 1 }), /not kebab-case/);
  });

  it('is reached by ctx.use, by each plugin its own', async (t) => {
    const seen: Record<string, unknown> = {};
    const keeper = (name: string) =>
      small(name, [], {
        requires: ['store'],
        declare: (ctx) =>
          ctx.effect('keep', async () => {
            const notes = await ctx.use('store').open('notes', { version: 1, initial: '' });
            await notes.save(`of ${name}`);
            seen[name] = notes.value;
            return () => undefined;
          }),
      });
    const test = await createTestHost({ plugins: [keeper('one'), keeper('two')] });
    t.after(() => test.close());
    assert.deepEqual(seen, { one: 'of one', two: 'of two' });
    assert.match(await readFile(`${test.stateDir}/store/two/notes.json`, 'utf8'), /of two/);
  });
});
