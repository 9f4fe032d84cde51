/** What the doctor finds, and what plugins say of themselves, in other languages: none is missing. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, it } from 'node:test';
import { exposureOf } from '../../../plugins/auth/exposure.ts';
import { LANGUAGES } from '../../../plugins/dashboard/languages.ts';
import { DESCRIBED, describedIn, FOUND, foundIn, SAID } from '../../../plugins/dashboard/said.ts';
import { gainsOver } from '../../../plugins/mount/releases/versions.ts';
import { MAKE_MOUNT_TABLE, NO_MOUNT_TABLE } from '../../../plugins/nfs/ganesha.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { sentencesIn, sources, wordsIn } from '../../support/dashboard/sentences.ts';
import { everyUser } from '../../../core/plugins/permissions.ts';
import type { FoundPlugin } from '../../../core/plugins/discovery/found.ts';
import { inTreePlugins } from '../../support/plugins/in-tree.ts';

const HAN = /\p{Script=Han}/u;
const others = LANGUAGES.filter((language) => language !== 'en');
const findings = ['core', 'plugins']
  .flatMap((folder) => [...sources(join(PROJECT, folder))])
  .filter(
    ({ text }) =>
      /import (?:type )?\{[^}]*\bCheck\b/.test(text) && /\bresult: [^\n]*'(?:ok|warning|error)'/.test(text),
  );
/** What findings tell comes from these as well, or is one of these constants. */
const ALSO = 'plugins/mount/lifecycle/fuse-access.ts';
const OPEN = ['0.0.0.0', '127.0.0.1'].map(
  (listen) => exposureOf({ listen, password: '', users: [], tokens: [] } as never, true)?.line ?? listen,
);
const EVERY_USER = Object.values(everyUser(['network'], false) ?? {});
const CONSTANTS = [...gainsOver([0, 0, 0]), ...OPEN, ...EVERY_USER, NO_MOUNT_TABLE, MAKE_MOUNT_TABLE];
const isTitle = /\btitle(?::| =) $/;
const nameless = (sentence: string): string => sentence.replaceAll(/\{\w+\}/g, '{}');

describe('what the doctor finds, in other languages', () => {
  it('stands in files of its own, in which it is looked for here', () => {
    const files = findings.map(({ path }) => basename(path));
    assert.ok(files.length >= 8, files.join());
    assert.deepEqual(
      files.filter((name) => !/^doctor|-check\.ts$/.test(name)),
      [],
    );
  });

  it('is there for every title, finding and advice that the code writes down', () => {
    const also = sentencesIn(readFileSync(join(PROJECT, ALSO), 'utf8'));
    const written = [...findings.flatMap(({ text }) => sentencesIn(text)), ...also]
      .filter(({ before }) => !/^import|\bfrom $|includes\($/.test(before))
      .filter(
        ({ sentence, before }) => isTitle.test(before) || (wordsIn(sentence) >= 2 && sentence.includes(' ')),
      )
      .filter(({ sentence }) => wordsIn(sentence) > 0)
      .map(({ sentence }) => sentence)
      .concat(CONSTANTS);
    assert.ok(written.length > 80, `${written.length} sentences`);
    for (const language of others) {
      const catalogue = { ...FOUND[language], ...SAID[language] };
      const known = new Set(Object.keys(catalogue).map(nameless));
      assert.deepEqual(
        [...new Set(written)].filter((sentence) => !known.has(nameless(sentence))),
        [],
        `without a translation in plugins/dashboard/locales/doctor/${language}.json`,
      );
    }
  });

  it('has nothing that the code does not say any more, and no value that it does not give', () => {
    const code = ['core', 'plugins']
      .flatMap((folder) => [...sources(join(PROJECT, folder))])
      .map(({ text }) => text)
      .join('\n')
      .replaceAll(/['"`]\s*\+\s*['"`]/g, '')
      .replaceAll(/\\(['"`\\])/g, '$1');
    for (const catalogue of Object.values(FOUND))
      for (const [english, translated] of Object.entries(catalogue)) {
        const missing = english
          .split(/\{\w+\}/)
          .map((part) => part.trim())
          .filter((part) => !code.includes(part));
        assert.deepEqual(missing, [], english);
        const values = (text: string): readonly string[] => [...(text.match(/\{\w+\}/g) ?? [])].sort();
        assert.deepEqual(values(translated), values(english), english);
      }
  });

  it('is put together of sentences with values, and leaves the words of others as they are', () => {
    const said = (text: string): string => foundIn('zh', text);
    assert.equal(said('state folder'), '状态文件夹');
    assert.equal(said('not installed: samba, samba-common-bin'), '未安装：samba, samba-common-bin');
    assert.match(
      said(
        'It works. `mountkeeper rclone install` gets v1.75.2 or newer. What one gains: connections over SMB that ' +
          'fail while they are set up are closed; a share over SMB is mounted with fewer questions to the NAS.',
      ),
      /^可以使用。`mountkeeper rclone install` 可安装 v1\.75\.2 .*建立失败的 SMB 连接会被关闭.*。$/,
    );
    assert.equal(said('the beds are dry'), 'the beds are dry');
    assert.equal(foundIn('en', 'state folder'), 'state folder');
  });
});

/** What it calls its jobs, its effects and what it shows. */
function wordsOf(found: FoundPlugin): readonly string[] {
  if (!found.plugin) return [];
  const { ledger } = found;
  return [
    ...[...ledger.jobs, ...ledger.intervals].map(({ name }) => name),
    ...ledger.effects.map(({ label }) => label),
    ...ledger.tabs.map(({ id }) => id),
  ];
}

describe('what plugins say of themselves, in other languages', () => {
  it('is there for each that comes with the package, and for no other', async () => {
    const found = await inTreePlugins();
    const descriptions = [
      ...new Set([...found.map(({ plugin }) => plugin?.description ?? ''), ...found.flatMap(wordsOf)]),
    ];
    assert.ok(found.length > 20 && descriptions.length > 60);
    for (const language of others) {
      assert.deepEqual(Object.keys(DESCRIBED[language] ?? {}).sort(), descriptions.sort());
      if (language === 'zh')
        for (const text of descriptions) assert.match(describedIn(language, text), HAN, text);
    }
    assert.equal(describedIn('zh', 'constructor'), 'constructor');
  });
});
