import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { joinPath, splitPath } from '../../../../core/sdk/toml/path.ts';
import type { Segment } from '../../../../core/sdk/toml/path.ts';
import { Positions } from '../../../../core/sdk/toml/positions.ts';

const TEXT = `# [not.a.table]
top = 1
[[shares]]
name = "a # no comment"
  connection = '[[shares]]'
"quoted \\u0041.key" = true
[[shares]] # second
name = """
[web]
port = 1"""""
tags = [ "x", # one, two
  { inner = 3, "deep er".still = [1979-05-27 07:32:00, "]"] },
]
[shares.extra]
note = 1
[ web . "sub key" ]
a.b . c = { d = '}' , e = 1 }
'lit.eral' = 2
[[rules.list]]
x = 1
[[rules.list]]
x = 2
`;

function find(...segments: Segment[]): string | undefined {
  const position = new Positions(TEXT).find(segments);
  return position && `${position.line}:${position.column}`;
}

describe('positions', () => {
  it('are those of a text that parses', () => {
    assert.doesNotThrow(() => parse(TEXT));
  });

  it('find keys of tables, arrays of tables, dotted, quoted and inline keys', () => {
    const found = {
      top: find('top'),
      first: find('shares', 0, 'name'),
      indented: find('shares', 0, 'connection'),
      quoted: find('shares', 0, 'quoted A.key'),
      second: find('shares', 1),
      name: find('shares', 1, 'name'),
      item: find('shares', 1, 'tags', 1),
      inner: find('shares', 1, 'tags', 1, 'inner'),
      deep: find('shares', 1, 'tags', 1, 'deep er', 'still', 1),
      below: find('shares', 1, 'extra', 'note'),
      header: find('web', 'sub key'),
      dotted: find('web', 'sub key', 'a', 'b', 'c', 'e'),
      literal: find('web', 'sub key', 'lit.eral'),
      rule: find('rules', 'list', 1, 'x'),
    };
    assert.deepEqual(found, {
      top: '2:1',
      first: '4:1',
      indented: '5:3',
      quoted: '6:1',
      second: '7:1',
      name: '8:1',
      item: '12:3',
      inner: '12:5',
      deep: '12:56',
      below: '15:1',
      header: '16:1',
      dotted: '17:23',
      literal: '18:1',
      rule: '22:1',
    });
  });

  it('fall back to the nearest ancestor in the text, or to nothing', () => {
    assert.equal(find('shares', 0, 'remote_path'), '3:1');
    assert.equal(find('web', 'port'), '16:1');
    assert.equal(find('cache', 'dir'), undefined);
    assert.equal(find(), undefined);
  });

  it('come to an end on any text', () => {
    for (const text of [
      '[',
      '[[',
      '"',
      '"""',
      'a',
      'a=',
      'a=[',
      'a={',
      'a={b',
      '=',
      ']',
      '\\',
      'a = [[[[',
      '[a]]]]b',
      "'''",
      '\r',
      'a = 1 2 3',
      'é = 1',
    ]) {
      assert.doesNotThrow(() => new Positions(text).find(['x']), text);
    }
  });
});

describe('paths', () => {
  it('come back the same after being written and read', () => {
    const paths: Segment[][] = [
      ['a'],
      ['shares', 0, 'name'],
      ['shares', '照片 2024', 'x.y'],
      ['a"b', 'c\\d', ''],
      ['connections', 'nas', 'options', 'pass'],
    ];
    assert.deepEqual(
      paths.map((path) => splitPath(joinPath(path))),
      paths,
    );
  });

  it('show names plainly where they can', () => {
    assert.equal(joinPath(['shares', '照片', 'mount_point']), 'shares.照片.mount_point');
    assert.equal(joinPath(['shares', 'my photos', 3]), 'shares."my photos"[3]');
  });

  it('take what is no path as one key', () => {
    assert.deepEqual(splitPath('a[b'), ['a[b']);
  });
});
