/** What `mountkeeper check` says of tokens that cannot do what they seem to be for. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { hashToken } from '../../../plugins/auth/token.ts';
import { VERBS } from '../../../plugins/auth/config.ts';
import { VERBS_OF_SHARES } from '../../../plugins/auth/token-warnings.ts';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import { createApi, SAMPLE } from '../../api/fixture.ts';
import type { ApiFixture } from '../../api/fixture.ts';

const ROLES_PAGE = new URL('../../../../docs/reference/roles.md', import.meta.url);

describe('tokens of the configuration', () => {
  let api: ApiFixture;
  afterEach(() => api.close());

  const warnings = async (...tokens: readonly string[]): Promise<readonly string[]> => {
    const clock = createManualClock();
    api = await createApi({ clock });
    const lines = tokens.map((line, index) => {
      const hash = line.includes('token_hash') ? '' : `token_hash = "${hashToken(`mk_${index}`)}"\n`;
      return `[[web.tokens]]\nname = "t${index}"\n${hash}${line}\n`;
    });
    const text = `${SAMPLE}\n[web]\npassword = "pw"\n${lines.join('')}`;
    const checked = await api.config.check(text, 'file');
    assert.ok(checked.ok, JSON.stringify(checked));
    return checked.loaded.warnings;
  };

  it('are named where they have expired, reach no share or no route, or are there twice', async () => {
    assert.deepEqual(
      await warnings(
        'role = "admin"\nexpires = "1969-01-01T00:00:00Z"',
        'role = "viewer"\nshares = ["photos", "fotos"]',
        'role = "viewer"\nshares = ["fotos"]',
        'verbs = ["metrics", "logs"]\nshares = ["photos"]',
        `role = "viewer"\ntoken_hash = "${hashToken('mk_3')}"`,
      ),
      [
        'the token "t0" has expired (1969-01-01T00:00:00Z) and lets nobody in; take it away, ' +
          'or set a later date',
        'the token "t1" is bound to "fotos", which is no share',
        'the token "t2" is bound to "fotos", which is no share, so it reaches nothing',
        'the token "t3" may do metrics, logs alone, which no token that is bound to shares may: ' +
          'it reaches nothing',
        'the token "t4" is the same as "t3", which is what counts; take one of both away',
      ],
    );
  });

  it('are none of it where they work', async () => {
    assert.deepEqual(
      await warnings(
        'role = "admin"\nexpires = "2999-01-01T00:00:00Z"',
        'verbs = ["metrics", "status"]\nshares = ["photos"]',
        'verbs = ["config"]',
      ),
      [],
    );
  });

  it('reach routes of shares by the verbs of the page of roles', async () => {
    api = await createApi({});
    const page = readFileSync(ROLES_PAGE, 'utf8');
    const rows = [...page.matchAll(/\| (its own|filtered) \| `(\w+)` \|$/gm)];
    const verbs = new Set(rows.map(([, , verb = '']) => verb));
    assert.deepEqual(
      VERBS.filter((verb) => verbs.has(verb)),
      VERBS.filter((verb) => VERBS_OF_SHARES.has(verb)),
    );
  });
});
