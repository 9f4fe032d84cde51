import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { copy, parseDocument } from '../../../core/sdk/toml/document.ts';
import { comment, renderDocument } from '../../../core/config/render.ts';
import { assemble } from '../../../core/config/schema/schema.ts';
import { inlineValue } from '../../../core/sdk/toml/value.ts';
import { NAS, accepted, openRoom, sampleEntries } from '../../support/config/config-fixture.ts';
import type { Room } from '../../support/config/config-fixture.ts';

const rooms: Room[] = [];
function closeRooms(): void {
  for (const opened of rooms.splice(0)) opened.close();
}

const { root } = assemble(sampleEntries());

function parsed(text: string): Record<string, unknown> {
  const result = parseDocument(text);
  assert.ok('document' in result, `${JSON.stringify(result)}\n${text}`);
  return result.document;
}

const TEXT = `shares = []
${NAS}
[web]
password = { env = "WORD" }

[plugins.strangers]
key = [{ a = 1 }, { b = [07:30:00, 1979-05-27] }]
`;

describe('the rendered document', () => {
  afterEach(closeRooms);

  it('reads like a commented file: set keys written, unset ones with their default', () => {
    const text = renderDocument(parsed(TEXT), root);
    const [, web] = /\n\n(# The dashboard[^]*?)\n\n/.exec(text) ?? [];
    assert.equal(
      web,
      `# The dashboard and the API.
[web]
# Address that the dashboard and the API listen on. Set a password before listening further than
# this machine.
#listen = "127.0.0.1"
# Port of the dashboard and the API; 0 takes any free one.
#port = 8090
# Names, beside localhost and addresses, under which the service may be addressed.
#hostnames = []
# Addresses, or ranges such as "10.0.0.0/8", of the proxies whose Forwarded or X-Forwarded-For
# header says who a client is, to the API and to WebDAV. None: these headers count for nothing.
#trusted_proxies = []
# Without TLS, take passwords, tokens and sign-ins from other machines, too, though everybody on the
# way can read them. Left out: over plain HTTP they are taken from this machine and from
# trusted_proxies alone.
#plain_http = false
# User name.
#username = "admin"
# Password.
password = { env = "WORD" }`,
    );
    assert.ok(text.startsWith('shares = []\n\n# The remotes.\n[[connections]]\n'));
    assert.ok(text.includes('\n#[smb]\n# Serve SMB.\n#enabled = false\n'));
    assert.ok(
      text.includes('\n[plugins.strangers]\nkey = [{ a = 1 }, { b = [07:30:00.000, 1979-05-27] }]\n'),
    );
  });

  it('explains shares once, at the first', () => {
    const shares = ['a', 'b', 'c'].map((name) => ({ name, connection: 'nas' }));
    const text = renderDocument({ ...parsed(NAS), shares }, root);
    assert.equal(text.split('Refuse every change.').length, 2);
    assert.ok(
      text.includes(
        '\n\n[[shares]]\nname = "b"\nconnection = "nas"\n\n[[shares]]\nname = "c"\nconnection = "nas"\n\n',
      ),
    );
  });

  it('gives a valid document when every hint is taken out of its comment', async () => {
    const text = renderDocument({}, root).replaceAll(/^#(?! )/gm, '');
    const room = openRoom({ env: { NAS_PASSWORD: 'x' } });
    rooms.push(room);
    const { config } = accepted(await room.service.check(text, 'file'));
    assert.deepEqual(
      [config.shares[0]?.name, config.connections[0]?.options['host']],
      ['photos', 'nas.example.org'],
    );
  });

  it('wraps comments, and lets no description break out of them', () => {
    assert.deepEqual(comment(''), []);
    assert.deepEqual(comment('one\ntwo = 3\r\n\u2028[web]\u0000'), ['# one two = 3 [web]']);
    assert.ok(comment('word '.repeat(200)).every((line) => line.length <= 100));
  });

  it('writes every value so that it reads back the same', () => {
    const values = [
      '',
      'a"b\\c\n\t\u0000\u007f\u001f',
      '照片 💾',
      0,
      -1,
      1.5,
      1e21,
      2 ** 60,
      -0,
      1e-7,
      Infinity,
      -Infinity,
      true,
      [],
      [[]],
      {},
      { 'a b': { 'c.d': [1, 'x'] } },
    ];
    for (const value of values)
      assert.deepEqual(parsed(`x = ${inlineValue(value)}`), { x: value }, inlineValue(value));
    assert.ok(Number.isNaN(parsed(`x = ${inlineValue(Number.NaN)}`)['x']));
    for (const date of [
      '1979-05-27T07:32:00Z',
      '1979-05-27T00:32:00.5-07:00',
      '1979-05-27T07:32:00',
      '1979-05-27',
      '07:32:00',
    ]) {
      assert.deepEqual(parsed(`x = ${inlineValue(parsed(`x = ${date}`)['x'])}`), parsed(`x = ${date}`));
    }
  });
});

const word = fc.string({ unit: 'grapheme', maxLength: 12 });
const key = fc
  .oneof(fc.stringMatching(/^[a-z_-]{1,8}$/), word)
  .filter((name) => !['__proto__', 'constructor'].includes(name));
const scalar = fc.oneof(word, fc.integer(), fc.double({ noNaN: true }), fc.boolean());
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const shareName = fc
  .stringMatching(/^[a-z][a-z0-9]{0,5}$/)
  .filter((name) => !['global', 'homes', 'pipe'].includes(name));
const secretValue = fc.oneof(word, fc.constant({ env: 'WORD' }));
const optional = <T>(shape: Record<string, fc.Arbitrary<T>>): fc.Arbitrary<object> =>
  fc.record(shape, { requiredKeys: [], noNullPrototype: true });

/** Beyond these an integer cannot be told from its neighbours, so options refuse it. */
function isAccepted(value: unknown): boolean {
  return typeof value !== 'number' || (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
}

const validDocument = fc.record(
  {
    connections: fc
      .constant(undefined)
      .chain(() =>
        fc.dictionary(
          fc.stringMatching(/^[A-Za-z0-9_-]{1,10}$/),
          fc.oneof(scalar.filter(isAccepted), fc.constant({ env: 'WORD' })),
          { noNullPrototype: true },
        ),
      )
      .map((options) => [
        { name: 'nas', type: 'local', options },
        { type: 'sftp', name: 'other' },
      ]),
    shares: fc.uniqueArray(shareName, { maxLength: 4 }).chain((names) =>
      fc.tuple(
        ...names.map((name) =>
          optional({
            remote_path: fc.stringMatching(/^[a-z/ ]*$/),
            read_only: fc.boolean(),
            protocols: fc.subarray(['smb', 'nfs']),
          } as Record<string, fc.Arbitrary<unknown>>).map((more) => ({ ...more, name, connection: 'nas' })),
        ),
      ),
    ),
    web: optional({ port: fc.nat(65_535), password: secretValue } as Record<string, fc.Arbitrary<unknown>>),
    smb: optional({
      enabled: fc.boolean(),
      users: fc.array(
        fc.record(
          { name: fc.stringMatching(/^[a-z]{1,5}$/), password: secretValue },
          { noNullPrototype: true },
        ),
        { maxLength: 3 },
      ),
    } as Record<string, fc.Arbitrary<unknown>>),
    warmup: optional({
      rules: fc.array(fc.record({ share: fc.constant('x'), path: word }, { noNullPrototype: true }), {
        maxLength: 3,
      }),
    } as Record<string, fc.Arbitrary<unknown>>),
    plugins: fc.dictionary(
      key.filter((name) => !['', 'dirs', 'auth', 'mount', 'smb', 'warmup'].includes(name)),
      fc.dictionary(key, anything, { maxKeys: 4, noNullPrototype: true }),
      { maxKeys: 3, noNullPrototype: true },
    ),
  },
  { requiredKeys: ['connections'], noNullPrototype: true },
);

describe('any document', () => {
  afterEach(closeRooms);

  it('that is valid stays valid and equal, and renders the same again', async () => {
    const room = openRoom({ env: { WORD: 'x' } });
    rooms.push(room);
    await fc.assert(
      fc.asyncProperty(validDocument, async (document) => {
        const text = room.service.render(document);
        const { document: again } = accepted(await room.service.check(text, 'file'));
        assert.deepEqual(again, copy(document));
        assert.equal(room.service.render(again), text);
      }),
      { numRuns: 100, seed: 7 },
    );
  });

  it('that is not valid still reads back the same', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.oneof(key, fc.constantFrom('web', 'shares', 'connections', 'plugins', 'smb')),
          anything,
          { noNullPrototype: true },
        ),
        (document) => {
          const text = renderDocument(document, root);
          const again = parsed(text);
          assert.deepEqual(again, copy(document));
          assert.equal(renderDocument(again, root), text);
        },
      ),
      { numRuns: 300, seed: 7 },
    );
  });
});
