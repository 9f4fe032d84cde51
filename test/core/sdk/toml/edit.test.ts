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

const CLIENTS = `allowed = [ # open
  "10.0.0.1", # first machine
  # between
  "10.0.0.2", # second
] # end
`;
const PORTS = 'ports = ["one", "two", "three"] # all\n';
const LISTS: readonly Case[] = [
  [
    'adds to a list over several lines, notes kept',
    { path: ['allowed'], value: ['10.0.0.1', '10.0.0.2', '10.0.0.9'] },
    CLIENTS,
    CLIENTS.replace('# second\n', '# second\n  "10.0.0.9",\n'),
  ],
  [
    'adds before the first of a list',
    { path: ['allowed'], value: ['10.0.0.0', '10.0.0.1', '10.0.0.2'] },
    CLIENTS,
    CLIENTS.replace('  "10.0.0.1"', '  "10.0.0.0",\n  "10.0.0.1"'),
  ],
  [
    'takes from a list the line of what goes',
    { path: ['allowed'], value: ['10.0.0.2'] },
    CLIENTS,
    CLIENTS.replace('  "10.0.0.1", # first machine\n', ''),
  ],
  [
    'changes one of a list at its place',
    { path: ['allowed'], value: ['10.0.0.1', '10.0.0.3'] },
    CLIENTS,
    CLIENTS.replace('10.0.0.2', '10.0.0.3'),
  ],
  [
    'keeps in a list what can stay when one moves',
    { path: ['allowed'], value: ['::1', '10.0.0.1', '10.0.0.2'] },
    CLIENTS.replace(']', '  "::1", # own\n]'),
    CLIENTS.replace('  "10.0.0.1"', '  "::1",\n  "10.0.0.1"'),
  ],
  [
    'adds behind a last one without a comma',
    { path: ['allowed'], value: ['10.0.0.1', '10.0.0.2', '::1', '::2'] },
    CLIENTS.replace('2",', '2"'),
    CLIENTS.replace('# second\n', '# second\n  "::1",\n  "::2"\n'),
  ],
  [
    'takes the last one without a comma',
    { path: ['allowed'], value: ['10.0.0.1'] },
    CLIENTS.replace('2",', '2"'),
    'allowed = [ # open\n  "10.0.0.1" # first machine\n  # between\n] # end\n',
  ],
  [
    'keeps a list on its line',
    { path: ['ports'], value: ['two', 'four'] },
    PORTS,
    PORTS.replace('"one", "two", "three"', '"two", "four"'),
  ],
  ['takes the end of a list', { path: ['ports'], value: ['one'] }, PORTS, 'ports = ["one"] # all\n'],
  [
    'changes one key of an inline table',
    { path: ['at', 'user'], value: 'z' },
    'at = { "host" = \'x\',  user = "y" } # both\n',
    'at = { "host" = \'x\',  user = "z" } # both\n',
  ],
  [
    'adds a key to an inline table',
    { path: ['at', 'port'], value: 1 },
    "at = { host = 'x' }\n",
    "at = { host = 'x', port = 1 }\n",
  ],
  [
    'takes a key from an inline table',
    { path: ['at', 'port'] },
    "at = { host = 'x', port = 1 }\n",
    "at = { host = 'x' }\n",
  ],
  [
    'changes an inline table in a list',
    { path: ['all', 1, 'b'], value: 3 },
    'all = [\n  { a = 0x1 }, # one\n  { a = 0x1, b = 2 }, # two\n]\n',
    'all = [\n  { a = 0x1 }, # one\n  { a = 0x1, b = 3 }, # two\n]\n',
  ],
];

const DOTTED = `# top
web.port = 1 # one
web."my key".a = 2 # two
log.level = "info"

[[connections]] # first
name = "a"
  options . host = "h" # where

[[connections]] # second
name = "b"

[[shares]]
name = "s"
`;
const BY_DOTS: readonly Case[] = [
  [
    'adds a key beside others by dotted keys',
    { path: ['web', 'listen'], value: '::1' },
    '# two\n',
    '# two\nweb.listen = "::1"\n',
  ],
  [
    'adds a key in a table that is there by dotted keys alone',
    { path: ['web', 'my key', 'b c'], value: 3 },
    '# two\n',
    '# two\nweb."my key"."b c" = 3\n',
  ],
  [
    'adds a key beside dotted ones in a table',
    { path: ['connections', 0, 'options', 'user'], value: 'u' },
    '# where\n',
    '# where\n  options.user = "u"\n',
  ],
  [
    'adds a table below one by dotted keys',
    { path: ['web', 'tls', 'self_made'], value: true },
    'name = "s"\n',
    'name = "s"\n\n[web.tls]\nself_made = true\n',
  ],
  [
    'adds one of an array below a table by dotted keys',
    { path: ['web', 'users', 0], value: { name: 'u' } },
    'name = "s"\n',
    'name = "s"\n\n[[web.users]]\nname = "u"\n',
  ],
  [
    'adds a table to the item of an array that it is meant for',
    { path: ['connections', 1, 'options', 'host'], value: 'h' },
    'name = "b"\n',
    'name = "b"\n\n[connections.options]\nhost = "h"\n',
  ],
  ['takes a dotted key away', { path: ['web', 'port'] }, 'web.port = 1 # one\n', ''],
];

describe('editing TOML text', () => {
  for (const [what, edit, before, after] of BY_DOTS)
    it(what, () => assert.equal(editToml(DOTTED, [edit]), DOTTED.replace(before, after)));

  it('keeps line ends as on Windows', () => {
    const windows = (text: string): string => text.replaceAll('\n', '\r\n');
    for (const [text, cases] of [
      [TEXT, CASES],
      [DOTTED, BY_DOTS],
    ] as const)
      for (const [what, edit] of cases)
        assert.equal(editToml(windows(text), [edit]), windows(editToml(text, [edit])), what);
    const lines = '# one\r\na = """\r\nx\r\ny"""\r\n';
    assert.equal(editToml(lines, [{ path: ['b'], value: 'x\ny' }]), `${lines}b = "x\\ny"\r\n`);
  });

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
    assert.throws(() => editToml('web.port = 1\n', [{ path: ['web'] }]), /web is written in a way/);
    assert.throws(() => editToml('a = = 1', [{ path: ['a'], value: 1 }]), /a/);
    assert.throws(() => editToml('a = 1', [{ path: ['a', 'b'], value: 1 }]), /./);
  });

  for (const [what, edit, before, after] of LISTS)
    it(what, () => assert.equal(editToml(before, [edit]), after));

  it('leaves the comments and lines of all that stays in a list, however it is laid out', () => {
    const member = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
    const gap = fc.constantFrom('', ' ', '\n  ', ' # note\n  ', '\n  # above\n  ');
    const gaps = fc.array(fc.tuple(gap, gap), { minLength: 7, maxLength: 7 });
    fc.assert(
      fc.property(
        fc.uniqueArray(member, { minLength: 1 }),
        fc.array(member),
        gaps,
        fc.boolean(),
        (is, wanted, around, hasLast) => {
          const items = is.map((one, at) => {
            const [before = '', behind = ''] = around[at] ?? [];
            return `${before}"${one}"${behind}${at < is.length - 1 || hasLast ? `, # of ${one}\n` : ''}`;
          });
          const text = `x = [${items.join('')}${around[6]?.[0] ?? ''}] # end\ny = 1\n`;
          const after = editToml(text, [{ path: ['x'], value: wanted }]);
          assert.deepEqual({ ...parse(after) }, { x: wanted, y: 1 });
          assert.ok(after.endsWith(' # end\ny = 1\n'), after);
          const isGrown = is.every((one, at) => wanted[at] === one);
          for (const note of isGrown ? text.matchAll(/#.*/g) : []) assert.ok(after.includes(note[0]), after);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('changes a list of thousands soon, on one line or on many', () => {
    const items = Array.from({ length: 20_000 }, (_, index) => `item ${index % 9_000}`);
    const wanted = items.map((one, index) => (index % 3 === 0 ? `${one}!` : one)).toReversed();
    for (const gap of [', ', ', # note\n  ']) {
      const text = `x = [${items.map((one) => JSON.stringify(one)).join(gap)}]\n`;
      const start = performance.now();
      assert.deepEqual({ ...parse(editToml(text, [{ path: ['x'], value: wanted }])) }, { x: wanted });
      assert.ok(performance.now() - start < 5_000, `${performance.now() - start} ms`);
    }
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
