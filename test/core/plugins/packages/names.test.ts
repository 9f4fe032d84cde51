/** Which names may come from the page: those of the registry's packages, and words to search for. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sourceOf } from '../../../../core/cli/plugin/install/source.ts';
import { isPackageSpec, searchWords } from '../../../../core/plugins/packages/names.ts';

const TAKEN = [
  'garden',
  'a',
  '@friend/garden',
  '@friend/mountkeeper-plugin-garden',
  'garden@1.2.3',
  'garden@1.2.3-rc.1+build.5',
  'garden@^1',
  'garden@~1.2',
  '@friend/garden@next',
];

const REFUSED = [
  '',
  ' ',
  '.',
  '..',
  './garden',
  '../garden',
  '/srv/garden',
  'folder/garden',
  '@friend/../garden',
  '@friend/garden/deeper',
  '~/garden',
  'garden.tgz',
  'garden.tar.gz',
  'garden.TGZ',
  'garden.tgz@1.0.0',
  'garden.tar.gz@next',
  'garden@1.0.0-x.tgz',
  'garden@1.0.0+x.tar.gz',
  '@friend/garden.tgz',
  'https://example.com/garden.tgz',
  'http://example.com/garden',
  'git+https://example.com/garden.git',
  'git@example.com:garden.git',
  'github:friend/garden',
  'friend/garden',
  'npm:garden',
  'roses@npm:garden',
  'roses@npm:garden@1.0.0',
  'garden@file:../x',
  'garden@link:/etc',
  'garden@workspace:*',
  'garden@https://example.com/x.tgz',
  'garden@*',
  'garden@>=1 <2',
  'garden@1 || 2',
  'garden@latest beta',
  'garden@',
  'garden@1.0.0@2.0.0',
  '-garden',
  '--registry=http://example.com',
  '--prefix',
  'garden --foreground-scripts',
  'garden pond',
  'garden\npond',
  'garden\u0000',
  'Garden',
  'gärden',
  '@/garden',
  '@friend/',
  '@Friend/garden',
  'a'.repeat(215),
  `garden@1.0.0-${'a'.repeat(80)}`,
];

describe('a package that the page names', () => {
  for (const spec of TAKEN)
    it(`may be ${spec}, which the command line takes from the registry`, async () => {
      assert.equal(isPackageSpec(spec), true);
      assert.deepEqual(await sourceOf(spec), { kind: 'registry', spec });
    });

  it('is no folder, tarball, address, repository, alias, option or anything else', () => {
    assert.deepEqual(REFUSED.filter(isPackageSpec), []);
  });
});

describe('words that the page searches for', () => {
  it('are words, at most five, or none', () => {
    assert.deepEqual(searchWords('  red   roses '), ['red', 'roses']);
    assert.deepEqual(searchWords(''), []);
    assert.deepEqual(searchWords('@friend/garden 花园'), ['@friend/garden', '花园']);
    assert.equal(searchWords('a b c d e f'), undefined);
    assert.equal(searchWords('a'.repeat(61)), undefined);
  });

  it('are no options, and no words that mean more to the registry', () => {
    for (const text of [
      '--config=/x',
      '-h',
      'roses --json',
      'maintainer:friend',
      'not:insecure',
      '--',
      '$(x)',
      '"a',
    ])
      assert.equal(searchWords(text), undefined, text);
  });
});
