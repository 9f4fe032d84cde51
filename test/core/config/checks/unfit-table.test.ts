/** A table that waits for its migration: what it makes of the document, from the file and over HTTP. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import Joi from 'joi';
import { ownKeys, partUnfit } from '../../../../core/config/checks/unfit-table.ts';
import { described } from '../../../../core/config/schema/described.ts';
import { ownTable } from '../../../../core/config/schema/parts.ts';
import type { ContributionEntry } from '../../../../core/config/schema/schema.ts';
import type { Document } from '../../../../core/sdk/toml/document.ts';
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
const { migrate: _, ...plain } = contribution;

describe('a table in a former form', () => {
  it("is looked at without the keys that the core's schema has there", () => {
    const { schema } = ownTable(entry({ contribution: { schema: Joi.object({ beds: Joi.number() }) } }));
    const { keys = {} } = described(schema) as { readonly keys?: object };
    assert.ok('isolation' in keys, Object.keys(keys).join());
    assert.deepEqual(Object.keys(ownKeys(keys)), ['beds']);
  });

  const said = (parted: ReturnType<typeof partUnfit>): readonly string[] => [...parted.unfit.values()];
  const saved = { origin: 'file', running: undefined, isStarting: false } as const;
  const starting = { ...saved, isStarting: true };
  const none = new Map<string, string>();

  it('is left out with a sentence, when it comes from the file', () => {
    const { entries, unfit } = partUnfit([entry()], documentWith(OLD), saved);
    assert.deepEqual(
      [...unfit],
      [
        [
          'garden',
          'its table [plugins.garden] is not in the form of this version of the plugin: ' +
            'bed_count is not allowed; "mountkeeper plugin migrate garden" shows it in the new form and writes it',
        ],
      ],
    );
    assert.equal(entries[0]?.contribution.schema.validate(OLD).error, undefined);
  });

  it('lets nobody past what only the file may say: over HTTP it must stay as it is', () => {
    const asked = [entry()];
    const over = (next: object, running: object) =>
      partUnfit(asked, documentWith(next), {
        origin: 'http',
        running: documentWith(running),
        isStarting: false,
      });
    assert.equal(said(over(OLD, OLD)).length, 1);
    for (const next of [{ ...OLD, place: '/etc/shadow' }, { bed_count: 4 }])
      assert.deepEqual(over(next, OLD), { entries: asked, unfit: none });
    assert.deepEqual(over(OLD, { beds: 3 }), { entries: asked, unfit: none });
  });

  it('is judged as before where it fits, and where nothing migrates it', () => {
    for (const [one, table] of [
      [entry(), { beds: 3 }],
      [entry({ contribution: plain }), OLD],
      [entry({ thirdParty: false }), OLD],
    ] as const) {
      const asked = [one];
      assert.deepEqual(partUnfit(asked, documentWith(table), saved), { entries: asked, unfit: none });
    }
  });

  it('keeps no daemon from its start, and no other change from being made, though nothing migrates it', () => {
    const asked = [entry({ contribution: plain })];
    const running = documentWith(OLD);
    const SAID = [
      'its table [plugins.garden] does not fit this version, which has no migration: bed_count is not allowed; ' +
        'change it by hand',
    ];
    assert.deepEqual(said(partUnfit(asked, running, starting)), SAID);
    for (const origin of ['file', 'http'] as const) {
      const now = { origin, running, isStarting: false };
      assert.deepEqual(said(partUnfit(asked, { ...running, web: {} }, now)), SAID);
      assert.deepEqual(said(partUnfit(asked, documentWith({ bed_count: 4 }), now)), []);
    }
    const inTree = [entry({ contribution: plain, thirdParty: false })];
    assert.deepEqual(said(partUnfit(inTree, running, starting)), []);
  });
});

describe("what shares and a section of its own say by a plugin's keys", () => {
  const share = Joi.object({ depth: Joi.number() });
  const pond = entry({
    contribution: { section: 'pond', schema: Joi.object({ fish: Joi.number() }), share },
  });
  const document = (fish: unknown, depth: unknown) => ({
    pond: { fish },
    shares: [{ name: 'lake', depth }, { name: 'other' }],
  });
  const reasons = (next: Document, running?: Document) => [
    ...partUnfit([pond], next, { origin: 'http', running, isStarting: running === undefined }).unfit.values(),
  ];

  it('is looked at like a table', () => {
    assert.deepEqual(reasons(document(3, 1)), []);
    assert.deepEqual(reasons(document('x', 1)), [
      'its section [pond] does not fit this version, which has no migration: fish must be a number; change it by hand',
    ]);
    assert.deepEqual(reasons(document(3, 'x')), [
      'its keys of the share "lake" do not fit this version: depth must be a number; change them by hand',
    ]);
    const { entries } = partUnfit([pond], document('x', 'x'), {
      origin: 'file',
      running: undefined,
      isStarting: true,
    });
    const { schema, share: keys } = entries[0]?.contribution ?? {};
    assert.equal(schema?.validate({ fish: 'x' }).error, undefined);
    assert.equal(keys?.validate({ depth: 'x' }).error, undefined);
    assert.ok(keys?.validate({ width: 'x' }).error);
  });

  it('is left alone where somebody changes something else, and refused where it is that', () => {
    const running = document('x', 'x');
    const another = { ...running, shares: [...running.shares, { name: 'third' }] };
    assert.equal(reasons(another, running).length, 1);
    const changed = [
      document('y', 'x'),
      document('x', 'y'),
      { ...running, shares: [...running.shares, { name: 'third', depth: 'x' }] },
    ];
    for (const next of changed) assert.deepEqual(reasons(next, running), []);
  });

  it('is what throws in its schema, too', () => {
    const failing = Joi.object({ fish: Joi.any().custom(() => assert.fail()) });
    failing.validate = () => {
      throw new Error('defect');
    };
    const odd = entry({ contribution: { section: 'pond', schema: failing } });
    const { unfit } = partUnfit([odd], document(1, 1), {
      origin: 'file',
      running: undefined,
      isStarting: true,
    });
    assert.match(unfit.get('garden') ?? '', /its schema cannot be used: defect/);
  });
});
