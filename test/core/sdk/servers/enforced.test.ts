/** Whether all servers go by the running document: asked of exporters that are up, replaced, slow or none. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { enforced } from '../../../../core/sdk/servers/enforced.ts';
import type { Guarding } from '../../../../core/sdk/servers/enforced.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { whileTimePasses } from '../../../support/platform/wait.ts';

describe('a document that keeps somebody out', () => {
  const clock = createManualClock();
  const ask = (guarding: () => readonly Guarding[]) => {
    const { entries, log } = collectLog();
    return whileTimePasses(clock, enforced({ clock, log, guarding })).then((open) => ({ open, entries }));
  };
  const one = (protocol: string, enforce?: () => Promise<void>): Guarding => ({
    protocol,
    exporter: enforce ? { enforce } : {},
  });

  it('is in force once each server has said so, whichever exporter it has by then', async () => {
    let refusals = 2;
    const asked: string[] = [];
    const former = one('webdav', () => Promise.reject(new Error('it is being replaced')));
    const next = one('webdav', async () => void asked.push('webdav'));
    const slow = one('smb', async () => {
      asked.push('smb');
      if (refusals-- > 0) throw new Error('not yet');
    });
    const seen = [former, { protocol: 'webdav', exporter: undefined }, next];
    const { open, entries } = await ask(() => [
      seen.length > 1 ? (seen.shift() as Guarding) : next,
      slow,
      one('ftp'),
    ]);
    assert.deepEqual([open, entries], [[], []]);
    // Who has said it is not asked again.
    assert.deepEqual(asked.toSorted(), ['smb', 'smb', 'smb', 'webdav']);
  });

  it('is said to be open by those that have not said so within 5 s, with the reason in the log', async () => {
    const begun = clock.monotonic();
    const { open, entries } = await ask(() => [
      one('nfs', () => Promise.resolve()),
      one('smb', () => Promise.reject(new Error('smbd is just starting'))),
      one('webdav', () => new Promise(() => undefined)),
      { protocol: 'ftp', exporter: undefined },
    ]);
    assert.deepEqual(open, ['smb', 'webdav', 'ftp']);
    assert.ok(clock.monotonic() - begun < 10_000);
    assert.match(JSON.stringify(entries), /smbd is just starting/);
  });
});
