import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { ConfigCheck, LoadedConfig } from '../../core/contract/config.ts';
import { applyWhole, reloadFile } from '../../core/reload-file.ts';

const document = (text: string): LoadedConfig => ({ text, warnings: [] }) as unknown as LoadedConfig;
const good = (loaded: LoadedConfig): ConfigCheck =>
  ({ ok: true, loaded, diff: { tier: 'live', changes: [] } }) as unknown as ConfigCheck;

/** A daemon that runs `running` and whose file holds one document after the other, each time it is read. */
function createParts(running: LoadedConfig, reads: readonly (() => ConfigCheck | Promise<ConfigCheck>)[]) {
  const sent: string[] = [];
  const notices: unknown[] = [];
  let read = 0;
  const config = {
    file: '/c.toml',
    current: running,
    loadFile: async () => (reads[read++] ?? assert.fail('read once too often'))(),
    commit: (loaded: LoadedConfig) => {
      config.current = loaded;
    },
  };
  const parts = {
    config,
    log: pino({ level: 'silent' }),
    host: { service: () => ({ enforce: async () => void sent.push('enforced') }) },
    status: { setStanding: (_key: string, notice: unknown) => notices.push(notice) },
    commands: { send: async (_name: string, loaded: LoadedConfig) => void sent.push(loaded.text) },
  } as unknown as Parameters<typeof reloadFile>[0];
  return { parts, config, sent, notices, reads: () => read };
}

describe('reading the configuration file again', () => {
  it('brings what it says to run', async () => {
    const { parts, config, sent } = createParts(document('old'), [() => good(document('new'))]);
    await reloadFile(parts);
    // It is done once no server lets anybody in by what was before.
    assert.deepEqual([sent, config.current.text], [['new', 'enforced'], 'new']);
  });

  it('never undoes a document that came to run meanwhile: the file is read once more', async () => {
    const submitted = document('submitted');
    const { parts, config, sent, reads } = createParts(document('old'), [
      () => {
        config.commit(submitted);
        return good(document('from disk, before'));
      },
      () => ({ ...good(submitted), diff: { tier: undefined, changes: [] } }) as unknown as ConfigCheck,
    ]);
    await reloadFile(parts);
    assert.deepEqual([sent, config.current.text, reads()], [[], 'submitted', 2]);
  });

  it('says nothing of a bad document that was written over meanwhile', async () => {
    const { parts, config, notices } = createParts(document('old'), [
      () => {
        config.commit(document('submitted'));
        return {
          ok: false,
          stage: 'parse',
          message: 'no',
          problems: [{ message: 'no' }],
        } as unknown as ConfigCheck;
      },
      () => good(document('submitted')),
    ]);
    await reloadFile(parts);
    assert.deepEqual(notices, [undefined]);
  });

  it('leaves what runs when the file is bad, and says where', async () => {
    const { parts, config, sent, notices } = createParts(document('old'), [
      () =>
        ({
          ok: false,
          stage: 'parse',
          message: 'no',
          problems: [{ line: 3, column: 7, message: 'no such key' }],
        }) as unknown as ConfigCheck,
    ]);
    await reloadFile(parts);
    assert.deepEqual([sent, config.current.text], [[], 'old']);
    assert.match(JSON.stringify(notices), /c\.toml:3:7: no such key/);
  });
});

describe('applying an accepted document', () => {
  it('tells for as long as it fails half-way', async () => {
    const notices: unknown[] = [];
    const status = { setStanding: (_key: string, notice: unknown) => void notices.push(notice) };
    const failing = applyWhole(status, () => Promise.reject(new Error('no watches are left')));
    await assert.rejects(failing, /no watches are left/);
    assert.match(JSON.stringify(notices.splice(0)), /"error".*not in force as a whole.*no watches are left/);
    await applyWhole(status, () => Promise.resolve());
    assert.deepEqual(notices, [undefined]);
  });
});
