import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { CommandHandlers } from '../../../../core/plugins/instance/command-handlers.ts';
import { emptyLedger } from '../../../../core/plugins/instance/ledger.ts';
import type { Ledger } from '../../../../core/plugins/instance/ledger.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const ledger = (plugin: string, ...fns: readonly (() => unknown)[]): Ledger =>
  ({
    ...emptyLedger(plugin, false),
    handlers: fns.map((fn) => ({ command: 'notify', fn })),
  }) as unknown as Ledger;

it('one plugin that never ends with a command holds up no other, and is not asked again before it has', async () => {
  const clock = createManualClock();
  const { log, entries } = collectLog();
  const asked: string[] = [];
  const ends: (() => void)[] = [];
  const hang = (): Promise<void> => {
    asked.push('hangs');
    return new Promise((resolve) => void ends.push(resolve));
  };
  const ledgers = [
    ledger('hangs', hang, hang),
    ledger('fails', () => Promise.reject(new Error('broken'))),
    ledger('works', () => void asked.push('works')),
  ];
  const handlers = new CommandHandlers({ ledgers: () => ledgers, clock, log });
  const first = handlers.run('notify', []);
  await clock.advance(5_000);
  await first;
  await handlers.run('notify', []);
  assert.deepEqual(asked, ['hangs', 'hangs', 'works', 'works']);
  assert.deepEqual(
    [...new Set(entries.map(({ plugin, msg }) => `${String(plugin)}: ${String(msg)}`))].sort(),
    [
      'fails: command failed',
      'hangs: plugin did not end with a command in time; it hears of no other until then',
    ],
  );
  ends.pop()?.();
  await clock.advance(0);
  await handlers.run('notify', []);
  assert.deepEqual(asked.slice(4), ['works']);
  ends.pop()?.();
  await clock.advance(0);
  const again = handlers.run('notify', []);
  await clock.advance(5_000);
  await again;
  assert.deepEqual(asked.slice(5), ['hangs', 'hangs', 'works']);
});

it("nobody waits for a third party's plugin", async () => {
  const { log, entries } = collectLog();
  const clock = createManualClock();
  const stranger = {
    ...ledger('stranger', () => new Promise(() => undefined)),
    routePrefix: '/ext/stranger',
  };
  await new CommandHandlers({ ledgers: () => [stranger], clock, log }).run('notify', []);
  await clock.advance(5_000);
  assert.deepEqual(
    entries.map(({ plugin, command }) => [plugin, command]),
    [['stranger', 'notify']],
  );
});
