/** The alert rules and the dashboard that come with the package: what they ask for is there. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pino } from 'pino';
import type { Plugin } from 'mountkeeper';
import { dryRun } from '../../../core/plugins/instance/instance.ts';
import metrics from '../../../plugins/metrics/index.ts';
import { dashboardQueries } from '../../support/metrics/grafana-queries.ts';

const MONITORING = fileURLToPath(new URL('../../../../config/monitoring/', import.meta.url));
const run = promisify(execFile);
const promtool = (...args: readonly string[]) => run('promtool', args, { cwd: MONITORING, timeout: 30_000 });

function declared(): ReadonlySet<string> {
  const { metrics: all } = dryRun(metrics as unknown as Plugin, pino({ level: 'silent' }));
  return new Set(
    all.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

const namesIn = (text: string): readonly string[] =>
  [...text.matchAll(/\b(?:mountkeeper|process|nodejs)_[a-z_]+/g)].map(([name]) => name);

describe('config/monitoring', () => {
  it('has rules and a scrape configuration that promtool takes', async () => {
    assert.match((await promtool('check', 'rules', 'alerts.yml')).stdout, /SUCCESS: \d+ rules found/);
    assert.match((await promtool('check', 'config', 'prometheus.yml')).stdout, /is valid prometheus config/);
  });

  it('has rules that fire when they should and not before', async () => {
    assert.match((await promtool('test', 'rules', 'alerts.test.yml')).stdout, /SUCCESS/);
  });

  it('asks for nothing that is not there', async () => {
    const known = declared();
    const rules = (await readFile(`${MONITORING}alerts.yml`, 'utf8'))
      .split('\n')
      .filter((line) => !/^\s*(#|summary|description)/.test(line))
      .join('\n');
    const queries = await dashboardQueries();
    assert.ok(queries.length > 20);
    const asked = new Set([...namesIn(rules), ...queries.flatMap(namesIn)]);
    assert.ok(asked.size > 15);
    assert.deepEqual(
      [...asked].filter((name) => !known.has(name)),
      [],
    );
  });
});
