import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cachePath, nameProblem, rclonePath } from '../../../../plugins/mount/rclone/kept-names.ts';

const KEPT = [
  'a:b?.txt',
  'x.',
  'y ',
  ' z',
  'back\\slash',
  '␉',
  '：',
  '‛‛x',
  '‛␉',
  'n'.repeat(255),
  'caf\u00e9',
  'コン',
];
const LOST = ['a\tb', 'a\nb', '\x01', 'del\x7F', '‛', 'a‛', '‛quote', '‛‛‛', '‛：'];
const DEVICES = ['CON', 'con', 'aux.txt', 'Nul.tar.gz', 'COM1', 'lpt9.x'];
const NO_DEVICES = ['CONTENT', 'con-1', 'my.con', 'COM', 'com10', 'auxiliary.txt'];

describe('names that a remote cannot keep', () => {
  for (const type of ['sftp', 'webdav', 'smb', 's3'])
    it(`are told from those that come back, over ${type}`, () => {
      assert.deepEqual(
        [...KEPT, ...NO_DEVICES].filter((name) => nameProblem(type, name) !== undefined),
        [],
      );
      assert.deepEqual(
        LOST.filter((name) => nameProblem(type, name) === undefined),
        [],
      );
      assert.deepEqual(
        DEVICES.filter((name) => nameProblem(type, name) !== undefined),
        type === 'smb' ? DEVICES : [],
      );
    });
});

describe('a path of the local disk', () => {
  for (const [path, told] of [
    ['a/b c．：', 'a/b c．：'],
    ['␉/x', '‛␉/x'],
    ['a\tb/\x7F', 'a␉b/␡'],
    ['‛/‛x', '‛‛/‛‛x'],
    ['．/．．/．x', '‛．/‛．‛．/．x'],
    ['a／b', 'a‛／b'],
  ] as const)
    it(`is ${JSON.stringify(told)} for rclone, when it is ${JSON.stringify(path)}`, () =>
      assert.equal(rclonePath(path), told));
});

describe('a path that rclone shows', () => {
  for (const [path, onDisk] of [
    ['a/b c．：', 'a/b c．：'],
    ['d␉ir/new␊l.txt', 'd\tir/new\nl.txt'],
    ['del␡', 'del\x7F'],
    ['lit‛␊eral', 'lit␊eral'],
    ['q‛‛uote', 'q‛‛uote'],
    ['zero␀', 'zero␀'],
  ] as const)
    it(`is ${JSON.stringify(onDisk)} in its cache, when it is ${JSON.stringify(path)}`, () =>
      assert.equal(cachePath(path), onDisk));
});
