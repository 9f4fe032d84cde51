import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { ShareStatus, StatusRecord } from 'mountkeeper';
import { emptyRecord, emptyShareStatus } from '../../../support/shares/status-records.ts';
import { sentenceOf } from '../../../../plugins/dashboard/overview/sentence.ts';
import { conditionOf } from '../../../../plugins/dashboard/overview/share-data.ts';
import { sentencePanel } from '../../../../plugins/dashboard/overview/panels.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import type { Unsaved } from '../../../../plugins/dashboard/overview/sentence.ts';

const NOTHING: Unsaved = {
  bytes: 0,
  oldestAt: undefined,
  cutOff: [],
  unread: [],
  offlineSince: undefined,
  paused: undefined,
};

function share(name: string, traits: Partial<ShareStatus> = {}): ShareStatus {
  return { ...emptyShareStatus(name), health: 'healthy', mounted: true, ...traits };
}

function record(shares: readonly ShareStatus[], traits: Partial<StatusRecord> = {}): StatusRecord {
  return { ...emptyRecord(0), shares, ...traits };
}

describe('the sentence', () => {
  before(() => loadLibraries());

  it('promises that all is saved exactly when all_synced is true, whatever else is known', () => {
    const states: Partial<ShareStatus>[] = [
      {},
      { dirtyCount: 3 },
      { erroredFiles: 1 },
      { health: 'failed', mounted: false },
      { health: 'pending' },
    ];
    for (const state of states) {
      for (const nasOffline of [false, true]) {
        for (const allSynced of [false, true]) {
          const { key, tone } = sentenceOf(
            record([share('files', state)], { allSynced, nasOffline }),
            NOTHING,
          );
          assert.equal(
            key === 'saved' && tone === 'good',
            allSynced,
            JSON.stringify({ state, nasOffline, allSynced, key }),
          );
          assert.equal(tone === 'good', allSynced);
        }
      }
    }
    assert.equal(sentenceOf(record([]), NOTHING).tone, 'wait');
  });

  it('counts what is not on the NAS over all shares and names them', () => {
    const shares = [share('files', { dirtyCount: 10 }), share('team', { dirtyCount: 2 }), share('calm')];
    const sentence = sentenceOf(record(shares), { ...NOTHING, bytes: 3_400, oldestAt: 5 });
    assert.deepEqual(
      [sentence.key, sentence.tone, sentence.files, sentence.bytes, sentence.oldestAt, sentence.shares],
      ['unsaved', 'warn', 12, 3_400, 5, ['files', 'team']],
    );
  });

  it('puts files that the NAS refuses before those that wait', () => {
    const sentence = sentenceOf(record([share('files', { dirtyCount: 4, erroredFiles: 1 })]), NOTHING);
    assert.deepEqual([sentence.key, sentence.files, sentence.tone], ['refused', 1, 'bad']);
  });

  const away = (shares: readonly ShareStatus[], cutOff: readonly string[]) =>
    sentenceOf(record(shares, { nasOffline: true }), { ...NOTHING, cutOff, offlineSince: 7 });
  const unmounted: Partial<ShareStatus> = { health: 'failed', mounted: false };
  const unreadable: Partial<ShareStatus> = { health: 'probing', mounted: true };

  it('promises cached files where every share that is cut off is mounted and can be read', () => {
    const shares = [share('files'), share('team')];
    assert.deepEqual(
      [away(shares, ['files']).key, away(shares, ['files']).since, away(shares, ['files']).shares],
      ['offline-cached', 7, ['files']],
    );
    assert.deepEqual([away(shares, []).key, away(shares, []).shares], ['offline-cached', []]);
    assert.equal(away(shares, ['files', 'team']).use, undefined);
  });

  it('promises no cached files of a share that is not mounted or cannot be read, whoever knows why', () => {
    const states: Partial<ShareStatus>[] = [
      unmounted,
      unreadable,
      { health: 'probing', mounted: false },
      { health: 'pending', mounted: false },
    ];
    for (const state of states)
      for (const cutOff of [[], ['files'], ['files', 'team']]) {
        const none = away([share('files', state), share('team', state)], cutOff);
        assert.deepEqual(
          [none.key, none.use?.usable, none.shares],
          ['offline', [], []],
          JSON.stringify(state),
        );
        const some = away([share('files'), share('team', state)], cutOff);
        assert.deepEqual([some.key, some.use?.usable], ['offline-partly', ['files']], JSON.stringify(state));
      }
    assert.equal(away([], []).key, 'offline');
  });

  it('says which shares can be used without the NAS, and which cannot', () => {
    const many = Array.from({ length: 10 }, (_, at) => share(`n${at}`, unmounted));
    const shares = [share('files'), share('new', unreadable), ...many];
    const markup = toHtml(sentencePanel(away(shares, []), createView({ language: 'en', host: 'h' })));
    assert.deepEqual(
      [...markup.matchAll(/<p[^>]*>(.*?)<\/p>/g)]
        .map(([, line = '']) => line.replaceAll(/<[^>]+>/g, ''))
        .slice(1),
      [
        'Cached files are usable in: files',
        'Mounted, but only what was written here is sure to be usable: new',
        'Not mounted, so nothing can be used: n0, n1, n2, n3, n4, n5, n6, n7 and 2 more',
      ],
    );
  });

  it('promises cached files only in folders whose listings are at hand, where others have not been listed', () => {
    const shares = [share('files'), share('new')];
    const shown = (unread: readonly string[]): string => {
      const sentence = sentenceOf(record(shares, { nasOffline: true }), { ...NOTHING, unread });
      const markup = toHtml(sentencePanel(sentence, createView({ language: 'en', host: 'h' })));
      return markup.replaceAll(/<[^>]+>/g, '');
    };
    assert.match(shown([]), /NAS offline; cached files are usable\s*$/);
    assert.match(
      shown(['new']),
      /in some shares only\s*Cached files are usable in: files\s*Cached files are usable in folders whose .*: new/,
    );
    assert.match(
      shown(['files', 'new']),
      /NAS offline\s*Cached files are usable in folders .*: files, new\s*$/,
    );
  });

  it('says of no file that it waits for a NAS that is not its own', () => {
    const shares = [share('files', { dirtyCount: 4 }), share('old', { dirtyCount: 1 })];
    const shown = (cutOff: readonly string[]): string => {
      const unsaved = { ...NOTHING, bytes: 2_048, cutOff, offlineSince: 7 };
      const sentence = sentenceOf(record(shares, { nasOffline: true }), unsaved);
      return toHtml(sentencePanel(sentence, createView({ language: 'en', host: 'h' })));
    };
    assert.match(
      shown(['old']),
      />1 file will go to the NAS when it is back<[^]*>4 files not yet on the NAS</,
    );
    assert.match(shown(['files', 'old']), />5 files, 2\.0 KiB will go to the NAS when it is back</);
    assert.doesNotMatch(shown(['files', 'old']), /not yet on the NAS/);
    assert.match(shown([]), />5 files, 2\.0 KiB will go to the NAS when it is back</);
  });

  it('names eight shares, and counts the others', () => {
    const shown = (count: number): string => {
      const shares = Array.from({ length: count }, (_, index) => share(`s${index}`, { dirtyCount: 1 }));
      const sentence = sentenceOf(record(shares), NOTHING);
      const markup = toHtml(sentencePanel(sentence, createView({ language: 'en', host: 'h' })));
      assert.match(markup, /<bdi[^>]*>s7<\/bdi>/);
      return markup.replaceAll(/<[^>]+>/g, '');
    };
    assert.match(shown(8), /s6, s7$/);
    assert.match(shown(10), /s6, s7 and 2 more$/);
    assert.doesNotMatch(shown(10), /s8/);
  });

  it('leaves out nothing that waits while something is refused, and says what a pause keeps', () => {
    const shares = [share('a', { dirtyCount: 2, erroredFiles: 1 }), share('b', { dirtyCount: 3 })];
    const paused = { shares: ['b'], until: Date.UTC(2026, 10, 22, 14, 5) };
    for (const [language, ...words] of [
      [
        'en',
        /1 file could not be saved on the NAS/,
        /4 other files are not yet on the NAS/,
        /Uploads of b are paused/,
      ],
      ['zh', /1 个文件无法保存到 NAS/, /另有 4 个文件尚未保存到 NAS/, /b 的上传暂停至/],
    ] as const) {
      const sentence = sentenceOf(record(shares), { ...NOTHING, paused });
      const page = toHtml(sentencePanel(sentence, createView({ language, host: 'nas' }))).replaceAll(
        /<[^>]+>/g,
        '',
      );
      for (const word of words) assert.match(page, word);
    }
    const alone = sentenceOf(record([share('a', { dirtyCount: 1, erroredFiles: 1 })]), NOTHING);
    assert.doesNotMatch(
      toHtml(sentencePanel(alone, createView({ language: 'en', host: 'nas' }))),
      /other file|paused/,
    );
  });

  it('tells shares that are taken down from those that start', () => {
    const gone = share('a', { health: 'pending', mounted: false, isLeaving: true });
    const { key, shares, tone } = sentenceOf(record([gone, share('b', { health: 'pending' })]), NOTHING);
    assert.deepEqual([key, shares, tone], ['leaving', ['a'], 'wait']);
    assert.deepEqual(
      [
        gone,
        share('b', { isLeaving: true, healthMessage: 'soon' }),
        share('c', { isLeaving: true, erroredFiles: 1 }),
      ].map(conditionOf),
      ['leaving', 'leaving', 'healthy-bad'],
    );
  });

  it('says why it is not known', () => {
    assert.equal(
      sentenceOf(record([share('files', { health: 'failed', mounted: false })]), NOTHING).key,
      'unreachable',
    );
    const silent = sentenceOf(record([share('a'), share('files')]), { ...NOTHING, cutOff: ['files'] });
    assert.deepEqual([silent.key, silent.shares], ['unreachable', ['files']], 'before that is an outage');
    assert.equal(
      sentenceOf(record([share('files', { health: 'probing', mounted: false })]), NOTHING).key,
      'starting',
    );
    assert.equal(sentenceOf(record([share('files')]), NOTHING).key, 'unknown');
  });
});
