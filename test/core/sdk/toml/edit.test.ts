import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'smol-toml';
import { editToml } from '../../../../core/sdk/toml/edit.ts';
import type { TomlEdit } from '../../../../core/contract/config.ts';

const TEXT = `# top
[[connections]] # the NAS
name = "nas"
options = { host = "nas", port = 22 }

# the photos
[[shares]]
name = "a" # mine
connection = "nas"

[web] # page
# which
port = 1 # one
`;

type Case = readonly [what: string, edit: TomlEdit, before: string, after: string];
const CASES: readonly Case[] = [
  ['changes a value, notes kept', { path: ['web', 'port'], value: 2 }, 'port = 1 # one', 'port = 2 # one'],
  [
    'adds a key to its table',
    { path: ['shares', 0, 'read_only'], value: true },
    'connection = "nas"\n',
    'connection = "nas"\nread_only = true\n',
  ],
  ['takes a key away with its line', { path: ['web', 'port'] }, 'port = 1 # one\n', ''],
  [
    'changes a key of an inline table',
    { path: ['connections', 0, 'options', 'port'], value: 23 },
    'port = 22 }',
    'port = 23 }',
  ],
  [
    'adds a table',
    { path: ['bandwidth', 'up'], value: '5M' },
    'port = 1 # one\n',
    'port = 1 # one\n\n[bandwidth]\nup = "5M"\n',
  ],
  [
    'adds one of an array',
    { path: ['shares', 1], value: { name: 'b', connection: 'nas' } },
    'port = 1 # one\n',
    'port = 1 # one\n\n[[shares]]\nname = "b"\nconnection = "nas"\n',
  ],
  [
    'takes one of an array away',
    { path: ['shares', 0] },
    '[[shares]]\nname = "a" # mine\nconnection = "nas"\n',
    '',
  ],
];

describe('editing TOML text', () => {
  for (const [what, edit, before, after] of CASES) {
    it(what, () => assert.equal(editToml(TEXT, [edit]), TEXT.replace(before, after)));
  }

  it('takes a table away with those below it, and leaves the notes of the next', () => {
    const text = '[[a]]\nx = 1\n[a.b]\ny = 1 # y\n# of c\n[c]\nz = 1\n';
    assert.equal(editToml(text, [{ path: ['a', 0] }]), '# of c\n[c]\nz = 1\n');
  });

  it('makes several changes one after the other', () => {
    const text = editToml('', [
      { path: ['connections', 0], value: { name: 'n' } },
      { path: ['connections', 0, 'options', 'host'], value: 'h' },
      { path: ['shares', 0], value: { name: 's' } },
    ]);
    assert.deepEqual(JSON.parse(JSON.stringify(parse(text))), {
      connections: [{ name: 'n', options: { host: 'h' } }],
      shares: [{ name: 's' }],
    });
  });

  it('refuses what it does not understand, and leaves nothing half done', () => {
    assert.throws(
      () => editToml('web.port = 1\n', [{ path: ['web', 'listen'], value: '::1' }]),
      /web\.listen is written in a way/,
    );
    assert.throws(() => editToml('a = = 1', [{ path: ['a'], value: 1 }]), /a/);
    assert.throws(() => editToml('a = 1', [{ path: ['a', 'b'], value: 1 }]), /./);
  });

  it('changes what was meant and nothing else, whatever stands there', () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 3 }));
    const key = fc.constantFrom('a', 'b', 'c d', 'é');
    fc.assert(
      fc.property(fc.constantFrom('web', 'cache', 'new'), key, value, (section, name, wanted) => {
        const after = editToml(`${TEXT}\n[cache]\na = [\n  "x", # x\n]\n`, [
          { path: [section, name], value: wanted },
        ]);
        assert.deepEqual((parse(after) as Record<string, Record<string, unknown>>)[section]?.[name], wanted);
        for (const note of ['# top', '# the NAS', '# the photos', '# mine', '# which', '# one'])
          assert.ok(after.includes(note), note);
      }),
      { numRuns: 300 },
    );
  });
});
