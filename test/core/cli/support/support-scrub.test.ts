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
    [
      'a name that smbd refused',
      '"clientDomain": "SECRET", "clientAccount": "a\\\\\\"SECRET", "workstation": "x"',
    ],
    ['a name that smbd refused, broken off', '"mappedAccount": "SECRET +>\n{"timestamp": "x"'],
    [
      'a name in the record',
      '"event":"refused","protocol":"smb","user":"\\"SECRET","from":{"address":"192.0.2.7"}',
    ],
    ['JSON in a text', String.raw`{"body":"{\"password\":\"SECRET\"}"}`],
    ['JSON in a text of a text', String.raw`"{\\\"a\\\":{\\\"token\\\":\\\"x\\\\\\\"SECRET\\\"}}"`],
    ['a list', '"set-cookie":["sid=x]SECRET","b=SECRET"], "pass":["SECRET"]'],
    ['a list in a text', String.raw`"{\"set-cookie\":[\"sid=SECRET\"],\"a\":1}"`],
    ['a table', '"token":{"value":"SECRET","more":{"x":"}SECRET"}}'],
    ['an address with @ in its password', 'http://u:p@SECRET@host/x'],
    ['an address with / in its password', 'http://u:pa/SECRET@host/x'],
    ['an address with a token for a user', 'https://SECRET@host/x'],
    ['a signed query', 'GET /x?X-Amz-Signature=SECRET&X-Amz-Credential=SECRET'],
    ['a query with a signature', 'https://a.blob.example/c?sv=1&sig=SECRET%3D'],
    ['a header without a scheme', 'authorization: SECRET'],
    ['a header with another scheme', 'Authorization: Negotiate YIISECRET'],
    ['a header that is quoted', '"authorization": "Negotiate YIISECRET"'],
    ['an answer of Negotiate', 'www-authenticate: Negotiate oRQwSECRETaAMKAQChCw=='],
    ['several cookies', 'cookie: a=SECRET; b=SECRET'],
    ['a webhook of Slack', 'POST https://hooks.slack.com/services/T0SECRET/B0/SECRET'],
    ['a webhook of Telegram', 'POST https://api.telegram.org/bot123:SECRET/sendMessage'],
    ['a webhook of Discord', 'POST https://discord.com/api/webhooks/1/SECRET'],
    ['an option and its value', 'rclone --sftp-pass SECRET --x'],
    ['an option and its value in a list', '["--sftp-pass","SECRET","--x"]'],
    ['a key of Wi-Fi', 'wpa-psk = "SECRET"'],
    ['a short name', 'db_pwd=SECRET; userPwd: SECRET'],
    ['German', 'Kennwort: SECRET\n"passwort": "SECRET"\nWLAN-Passwort = SECRET'],
    ['French', 'mot_de_passe=SECRET\nMot de passe : SECRET\n"motDePasse":"SECRET"'],
    ['Chinese', '密码：SECRET\n"密码": "SECRET"\n口令 = SECRET\n密碼＝SECRET'],
    ['a short name of an option', 'x --smb-pwd SECRET --psk SECRET'],
    ['a JWT', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTRUNSRVQifQ.SECRET-SECRET_SECRET, as told'],
    ['a JWT in a query', 'GET /x?jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTRUNSRVQifQ.SECRETSECRET&y=1'],
    [
      'a JWT that is escaped',
      String.raw`"Bearer%20eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTRUNSRVQifQ.SECRET\neyJhbGciOiJIUzI1NiJ9.eyJzSECRET.SECRET"`,
    ],
    ['a JWT that is encrypted', 'eyJhbGciOiJSU0EifQ.SECRETSECRET.SECRETSECRET.SECRET.SECRET'],
    ['a topic of ntfy', 'POST https://ntfy.sh/SECRET?priority=5'],
    ['a topic of an own ntfy', 'POST http://ntfy.example.com:8080/SECRET/json'],
    ['a query of ntfy', 'POST https://push.example/alerts?auth=QmVhcmVySECRET'],
    ['a token of ntfy', `user of ntfy: tk_${'SECRET'.toLowerCase()}${'0'.repeat(23)}SECRET`],
    [
      'a webhook of Teams',
      'POST https://acme.webhook.office.com/webhookb2/SECRET@SECRET/IncomingWebhook/SECRET/SECRET',
    ],
    [
      'an older webhook of Teams',
      'POST https://outlook.office.com/webhook/SECRET@SECRET/IncomingWebhook/SECRET',
    ],
    [
      'a webhook of Teams by workflows',
      'https://prod-1.westeurope.logic.azure.com:443/workflows/SECRET/triggers/manual/paths/invoke?sv=1.0&sig=SECRET',
    ],
    [
      'a signature in JSON of Go',
      String.raw`"https://x.powerplatform.com/invoke?sp=%2F\u0026sig=SECRET\u0026sv=1"`,
    ],
    ['a webhook of Discord with a version', 'POST https://discord.com/api/v10/webhooks/1/SECRET'],
    ['a token of Slack', 'sent as xoxb-1234-SECRETSECRET'],
    ['a webhook of an own Telegram', 'POST http://127.0.0.1:8081/bot123:SECRET-SECRET/sendMessage'],
    ['a token of Telegram', 'the bot 123456789:SECRET-SECRET_SECRET-SECRET_SECRETS is asked'],
    ['half a key', '-----BEGIN RSA PRIVATE KEY-----\nSECRET'],
  ] as const) {
    it(`has nothing that looks like a secret: ${what}`, () => {
      const scrubbed = createScrub([])(text);
      assert.doesNotMatch(scrubbed, /SECRET|QWxhZGRpbjpTRUNSRVQ|U0VDUkVU|eyJz/);
      assert.ok(scrubbed.includes(MASK));
    });
  }

  it('keeps what is none', () => {
    const text =
      '2026-01-01 INFO mount: share mounted share=photos compass=north passed=3\ntokens were counted\n';
    assert.equal(createScrub([])(text), text);
    for (const same of [
      'https://nas.example:5006/@scope/name',
      'http://[fe80::1]:80/a@b',
      'https://packages.example/@scope/name',
      'they negotiate the version; a basic one, signal=3, design: new',
      '--key-file /x --compass north',
      '"password":""',
      'the cwd: /x, a bot: started, robot12:abcdefghijklmnop, upsk, 密码未设置, das Passwort wurde gesetzt',
      'https://docs.ntfy.sh/publish, eyJ is how one begins, eye.sight.tests, 12:30:45 bot1:on',
      '2026-11-28 23:10:43 123456789:up',
      'https://outlook.office.com/mail/inbox, https://discord.com/api/v10/gateway, author=x',
    ])
      assert.equal(createScrub([])(same), same);
    assert.equal(
      createScrub([])('"{\\"password\\":\\"a\\",\\"share\\":\\"photos\\"}"'),
      `"{\\"password\\":\\"${MASK}\\",\\"share\\":\\"photos\\"}"`,
    );
    assert.equal(createScrub([])('sftp://ada:x@y@nas/z'), `sftp://ada:${MASK}@nas/z`);
  });
});

describe('JSON that leaves the machine', () => {
  const scrub = createScrub(['known-SECRET', '4711']);
  const inner = { pass: 'SEC"RET\\', token: { a: ['SECRET'] }, x: 1 };
  const document = {
    name: 'nas',
    pass: 'SECRET',
    password: '',
    auth_token: 12_345,
    access_token: null,
    secret: { value: 'SECRET', more: ['}SECRET'] },
    cookies: ['SECRET', 'b'],
    port: 4711,
    arguments: ['--sftp-pass', 'SECRET', '--header', 'authorization: Basic U0VDUkVU'],
    hash: '$scrypt$ln=15$SECRET$SECRET',
    body: JSON.stringify(inner),
    deeper: JSON.stringify({ text: JSON.stringify(inner), hash: '$2b$SECRET' }),
    quoted: `it's "known-SECRET"`,
    last_secret: true,
  };
  for (const space of [0, 2])
    it(`is JSON still, indented by ${space}`, () => {
      const scrubbed = scrub(JSON.stringify(document, null, space));
      assert.doesNotMatch(scrubbed, /SECRET|U0VDUkVU|12345|4711/);
      const read = JSON.parse(scrubbed) as typeof document;
      assert.deepEqual(Object.keys(read), Object.keys(document));
      assert.deepEqual(
        [read.name, read.pass, read.password, read.secret, read.cookies, read.port],
        ['nas', MASK, '', MASK, MASK, MASK],
      );
      assert.deepEqual(JSON.parse(read.body), { pass: MASK, token: MASK, x: 1 });
      const { text } = JSON.parse(read.deeper) as { text: string };
      assert.deepEqual(JSON.parse(text), { pass: MASK, token: MASK, x: 1 });
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
