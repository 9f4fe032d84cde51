import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createScrub,
  secretsIn,
  secretsNamedIn,
  textsIn,
} from '../../../../core/cli/support/support-scrub.ts';

const MASK = '********';

describe('what leaves the machine', () => {
  it('has no secret that is known, in whatever form', () => {
    const secret = 'p&ss "w/rd" ü+1';
    const scrub = createScrub([secret]);
    const forms = [
      secret,
      JSON.stringify(secret),
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('hex'),
    ];
    for (const form of forms) assert.ok(!scrub(`before ${form} after`).includes(form), form);
    assert.equal(scrub('before after'), 'before after');
  });

  it('has no part of an address that is secret as a whole', () => {
    const scrub = createScrub(['https://hooks.example/services/T0KENpart?key=SECRETvalue']);
    assert.equal(
      scrub('POST T0KENpart to hooks.example: SECRETvalue'),
      `POST ${MASK} to hooks.example: ${MASK}`,
    );
  });

  it('has no short one as a word, but keeps the words around it', () => {
    assert.equal(createScrub(['abc'])('abc abcd x=abc, (abc)'), `${MASK} abcd x=${MASK}, (${MASK})`);
  });

  for (const [what, text] of [
    ['a header', 'authorization: Basic QWxhZGRpbjpTRUNSRVQ='],
    ['a header in JSON', '{"Authorization":"Bearer SECRET.a-b_c"}'],
    ['an address', 'sftp://user:SECRET@nas/x'],
    ['an option', '--sftp-pass=SECRET --x'],
    ['an option of TOML', 'webhook_secret = "SECRET with spaces"'],
    ['a variable', 'RCLONE_CONFIG_NAS_PASS=SECRET'],
    ['JSON', '"client_secret": "SECRET", "x": 1'],
    ['a query', 'GET /x?access_token=SECRET&y=1'],
    ['a key', '-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET\nSECRET\n-----END OPENSSH PRIVATE KEY-----'],
    ['a hash', '$scrypt$ln=15,r=8$SECRET$SECRET'],
    ['a cookie', 'cookie: session=SECRET'],
    ['half a key', '-----BEGIN RSA PRIVATE KEY-----\nSECRET'],
  ] as const) {
    it(`has nothing that looks like a secret: ${what}`, () => {
      const scrubbed = createScrub([])(text);
      assert.doesNotMatch(scrubbed, /SECRET|QWxhZGRpbjpTRUNSRVQ/);
      assert.ok(scrubbed.includes(MASK));
    });
  }

  it('keeps what is none', () => {
    const text =
      '2026-01-01 INFO mount: share mounted share=photos compass=north passed=3\ntokens were counted\n';
    assert.equal(createScrub([])(text), text);
  });
});

describe('the secrets of a document', () => {
  const resolve = (): string => 'from elsewhere';
  it('are what is masked where it is shown, and what references lead to', async () => {
    const document = {
      a: 'one',
      list: [{ pass: 'two', plain: 'no' }, { pass: { file: '/x' } }],
      odd: { deep: { n: 42 } },
    };
    const shown = { a: MASK, list: [{ pass: MASK, plain: 'no' }, { pass: { file: '/x' } }], odd: MASK };
    assert.deepEqual(await secretsIn(document, shown, { resolve }), ['one', 'two', 'from elsewhere', '42']);
  });

  it('are what the references of one that is not valid lead to, wherever they stand', () => {
    const text =
      'a = { file = "/secret" }\n[b]\nenv = \'B\'\nc.credential="c"\n[log]\nfile = "/var/log/x.log"\n' +
      'd = { file = "/mnt/share/hangs" }\nfile = "/gone"\n[broken';
    const secrets = {
      resolve: (reference: unknown) => {
        if (JSON.stringify(reference).includes('gone')) throw new Error('there is no such file');
        return JSON.stringify(reference);
      },
    };
    assert.deepEqual(secretsNamedIn(text, secrets, ['/mnt/share']), [
      '{"file":"/secret"}',
      '{"env":"B"}',
      '{"credential":"c"}',
    ]);
  });

  it('are all its texts when it is not valid', () => {
    assert.deepEqual(textsIn(`pass = "hunter22"\nfile = "/etc/x"\nother = 'literal one'\nshort = "abc"`), [
      'hunter22',
      'literal one',
    ]);
  });
});
