/** A table that waits for its migration: what it makes of the document, from the file and over HTTP. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Joi from 'joi';
import { ownKeys, partUnfit } from '../../../../core/config/checks/unfit-table.ts';
import { described } from '../../../../core/config/schema/described.ts';
import { ownTable } from '../../../../core/config/schema/parts.ts';
import type { ContributionEntry } from '../../../../core/config/schema/schema.ts';
import type { ConfigContribution } from '../../../../core/contract/config.ts';

const contribution: ConfigContribution = {
  schema: Joi.object({ beds: Joi.number().default(1), place: Joi.string().meta({ fileOnly: true }) }),
  migrate: (table) => table,
};
const entry = (more: Partial<ContributionEntry> = {}): ContributionEntry => ({
  owner: 'garden',
  version: '2.0.0',
  thirdParty: true,
  enabledByDefault: false,
  contribution,
  ...more,
});
const documentWith = (garden: object) => ({
  plugins: { garden: { enabled: true, isolation: 'own', ...garden } },
});
const OLD = { bed_count: 3 };

describe('a table in a former form', () => {
  it("is looked at without the keys that the core's schema has there", () => {
    const { schema } = ownTable(entry({ contribution: { schema: Joi.object({ beds: Joi.number() }) } }));
    const { keys = {} } = described(schema) as { readonly keys?: object };
    assert.ok('isolation' in keys, Object.keys(keys).join());
    assert.deepEqual(Object.keys(ownKeys(keys)), ['beds']);
  });

  it('is left out with a sentence, when it comes from the file', () => {
    const { entries, warnings } = partUnfit([entry()], documentWith(OLD), {
      origin: 'file',
      running: undefined,
    });
    assert.deepEqual(warnings, [
      'plugin garden: its table [plugins.garden] is not in the form of this version of the plugin: ' +
        'bed_count is not allowed; "mountkeeper plugin migrate garden" shows it in the new form and writes it',
    ]);
    assert.equal(entries[0]?.contribution.schema.validate(OLD).error, undefined);
  });

  it('lets nobody past what only the file may say: over HTTP it must stay as it is', () => {
    const asked = [entry()];
    const over = (next: object, running: object) =>
      partUnfit(asked, documentWith(next), { origin: 'http', running: documentWith(running) });
    assert.equal(over(OLD, OLD).warnings.length, 1);
    for (const next of [{ ...OLD, place: '/etc/shadow' }, { bed_count: 4 }])
      assert.deepEqual(over(next, OLD), { entries: asked, warnings: [] });
    assert.deepEqual(over(OLD, { beds: 3 }), { entries: asked, warnings: [] });
  });

  it('is judged as before where it fits, and where nothing migrates it', () => {
    const { migrate: _, ...plain } = contribution;
    for (const [one, table] of [
      [entry(), { beds: 3 }],
      [entry({ contribution: plain }), OLD],
      [entry({ thirdParty: false }), OLD],
    ] as const) {
      const asked = [one];
      assert.deepEqual(partUnfit(asked, documentWith(table), { origin: 'file', running: undefined }), {
        entries: asked,
        warnings: [],
      });
    }
  });
});
