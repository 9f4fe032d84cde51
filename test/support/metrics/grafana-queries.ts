/** The queries of the dashboard for Grafana that comes with the package. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const DASHBOARD = fileURLToPath(
  new URL('../../../../config/monitoring/grafana-dashboard.json', import.meta.url),
);

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

/**
 * What Grafana would ask a Prometheus whose scrape job is called `mountkeeper`, for all machines and shares.
 */
export async function dashboardQueries(): Promise<readonly string[]> {
  const { panels, templating } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as Dashboard;
  const values = { job: 'mountkeeper', instance: '.*', share: '.*', __rate_interval: '10s' };
  const filled = (query: string): string =>
    Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`$${name}`, value), query);
  const variables = templating.list.flatMap(
    ({ definition }) => /^label_values\((.+), \w+\)$/.exec(definition ?? '')?.[1] ?? [],
  );
  return [...variables, ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))].map(filled);
}
